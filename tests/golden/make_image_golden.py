#!/usr/bin/env python3
"""Make tests/golden/image: small picture files of every kind, and what Pillow makes of them, as digests.

    python3 tests/golden/make_image_golden.py

The digests in the tree are those of Pillow 13.0.0. Needs numpy, Pillow and cjpeg (see tests/parity/image_files.py).
Each line of digests.txt: name, format, width, height, then the first 16 digits of the SHA-256 of the RGB pixels as
stored, of the pixels turned upright by EXIF, and of each picture that derived() makes, in that order.
"""
from __future__ import annotations

import hashlib
import pathlib
import re
import shutil
import sys
import warnings

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "parity"))
import image_files  # noqa: E402
import image_parity  # noqa: E402

warnings.simplefilter("ignore")
MAX_BYTES = 10000  # of a file that is stored
PER_FAMILY = 2  # files that differ in size only


def digest(array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def derived(stored: Image.Image, upright: Image.Image) -> list[np.ndarray]:
    frame = image_parity.expected_frame
    return [
        frame(stored, 0, (640, 480)),  # the default frame
        frame(stored, 1, (640, 480)),  # the same in luma
        frame(stored, 0, None),  # native
        frame(upright, 1, image_parity.max_size(*upright.size, 50)),  # max:50, upright, luma
        np.asarray(stored.resize((7, 5), Image.Resampling.BILINEAR)),
        np.asarray(stored.resize((200, 3), Image.Resampling.BILINEAR)),
    ]


def selected():
    seen: dict[str, int] = {}
    for item in image_files.all_files():
        family = re.sub(r"-\d+x\d+(?=-|$)", "", item.name)
        if len(item.data) > MAX_BYTES or not item.small or seen.get(family, 0) >= PER_FAMILY:
            continue
        # the smallest and the first of a usual size
        size = re.search(r"-(\d+)x(\d+)", item.name)
        if seen.get(family, 0) == 1 and size and min(int(size[1]), int(size[2])) < 5:
            continue
        seen[family] = seen.get(family, 0) + 1
        yield item
    root = HERE.parent.parent
    sample = root / "sample_data" / "bridge.jpg"
    yield image_files.Item("../../../sample_data/bridge.jpg", sample.read_bytes())


def main() -> int:
    out = HERE / "image"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    lines = []
    for item in selected():
        stored, upright = image_parity.pillow_rgb(item)
        kind = Image.open(image_files.io.BytesIO(item.data)).format.lower().replace("mpo", "jpeg")
        name = item.name
        if "/" not in name:
            name += "." + {"jpeg": "jpg", "ppm": "pnm"}.get(kind, kind)
            (out / name).write_bytes(item.data)
        digests = [digest(stored), digest(upright)] + [digest(a) for a in derived(stored, upright)]
        lines.append(" ".join([name, kind, str(stored.width), str(stored.height), *digests]))
    (out / "digests.txt").write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compare the library's decoding, turning and resampling with Pillow's, byte for byte.

    python3 tests/parity/image_parity.py [build/lib/libsuperpoint.so]

Every file of image_files.py is decoded by both; resized to several sizes by both; made into frames (red and luma, fixed,
native, max:N, turned by EXIF) by the library and by Pillow's calls. Then sizes from 1 x 1 to 4000 x 3000 are resampled.
"""
from __future__ import annotations

import io
import sys
import warnings

import numpy as np
from PIL import Image, ImageOps

import image_files
from libsuperpoint import Library

warnings.simplefilter("ignore")


def pad(plane: np.ndarray) -> np.ndarray:
    height, width = plane.shape
    return np.pad(plane, ((0, -height % 8), (0, -width % 8)))


def max_size(width: int, height: int, longer: int) -> tuple[int, int]:
    side = max(width, height)
    return tuple(max(1, (n * longer + side // 2) // side) for n in (width, height))


def expected_frame(rgb: Image.Image, channel: int, size: tuple[int, int] | None) -> np.ndarray:
    plane = rgb.convert("L") if channel else rgb.getchannel(0)
    if size:
        plane = plane.resize(size, Image.Resampling.BILINEAR)
    return pad(np.asarray(plane))


class Tally:
    def __init__(self):
        self.done, self.wrong = 0, []

    def compare(self, name: str, ours, theirs) -> None:
        self.done += 1
        if ours.shape != theirs.shape:
            self.wrong.append(f"{name}: {ours.shape} instead of {theirs.shape}")
        elif not np.array_equal(ours, theirs):
            d = np.abs(ours.astype(int) - theirs.astype(int))
            self.wrong.append(f"{name}: {np.count_nonzero(d)} of {d.size} bytes differ, by {d.max()} at most")


def pillow_rgb(item) -> tuple[Image.Image, Image.Image]:
    """As decoded, and turned upright."""
    if item.expected is not None:
        rgb = Image.fromarray(item.expected, "RGB")
        return rgb, rgb
    image = Image.open(io.BytesIO(item.data))
    image.load()
    return image.convert("RGB"), ImageOps.exif_transpose(image).convert("RGB")


def compare_file(library: Library, item, tally: Tally) -> None:
    stored, upright = pillow_rgb(item)
    try:
        ours, info = library.decode(item.data)
        tally.compare(f"{item.name} decode", ours, np.asarray(stored))
        if (info.width, info.height) != stored.size:
            tally.wrong.append(f"{item.name}: probe says {info.width}x{info.height}")
        tally.compare(f"{item.name} exif", library.decode(item.data, exif=1)[0], np.asarray(upright))
        for channel in (0, 1):
            tag = f"{item.name} channel {channel}"
            tally.compare(f"{tag} fixed", library.frame(item.data, channel=channel),
                          expected_frame(stored, channel, (640, 480)))
            tally.compare(f"{tag} native", library.frame(item.data, channel=channel, resize=1),
                          expected_frame(stored, channel, None))
            tally.compare(f"{tag} max:50", library.frame(item.data, channel=channel, resize=2, width=50),
                          expected_frame(stored, channel, max_size(*stored.size, 50)))
            tally.compare(f"{tag} upright 16x24",
                          library.frame(item.data, channel=channel, exif=1, width=16, height=24),
                          expected_frame(upright, channel, (16, 24)))
    except RuntimeError as e:
        tally.wrong.append(f"{item.name}: {e}")


def compare_sizes(library: Library, tally: Tally) -> None:
    sizes = [(1, 1), (1, 7), (7, 1), (2, 3), (8, 8), (17, 5), (64, 48), (100, 100), (333, 77), (640, 480), (1000, 3),
             (3, 1000), (1600, 900), (4000, 3000)]
    for channels in (1, 3):
        for size in sizes:
            array = image_files.picture(*size, channels)
            theirs = Image.fromarray(array[..., 0] if channels == 1 else array)
            for target in sizes:
                if size[0] * size[1] * target[0] * target[1] > 4e12:
                    continue
                expected = np.asarray(theirs.resize(target, Image.Resampling.BILINEAR)).reshape(
                    target[1], target[0], channels)
                tally.compare(f"resize {channels} x {size} to {target}", library.resize(array, *target), expected)


def main() -> int:
    library, tally, files = Library(sys.argv[1] if len(sys.argv) > 1 else None), Tally(), 0
    for item in image_files.all_files():
        compare_file(library, item, tally)
        files += 1
    compare_sizes(library, tally)
    for line in tally.wrong[:60]:
        print(line)
    print(f"{files} files, {tally.done} comparisons with Pillow {Image.__version__}: {len(tally.wrong)} differ")
    return 1 if tally.wrong or files < 300 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Make sample_data/bridge.jpg from the photograph in Debian's package palapeli-data.

Needs Pillow; the bytes in the tree were made with Pillow 13.0.0 (libjpeg-turbo 3.2.0).

    apt-get download palapeli-data && dpkg -x palapeli-data_*.deb unpacked
    python3 sample_data/make_sample.py unpacked/usr/share/palapeli/collection/cincinnati-bridge.jpg sample_data/bridge.jpg
"""
import hashlib
import sys

from PIL import Image

SOURCE_SHA256 = "09772d09318b34a5c5edd58ee86ff462bcd2907006f31cc8e0704310f8e9ab60"
# 16:9 cut of the 1302 x 953 picture that keeps the tower's crown and the boat.
LEFT, TOP, WIDTH, HEIGHT = 0, 44, 1302, 732
OUT_SIZE = (1600, 900)
QUALITY = 90


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    if digest != SOURCE_SHA256:
        print(f"{sys.argv[1]}: another picture (sha256 {digest})", file=sys.stderr)
        return 1
    picture = Image.open(sys.argv[1]).convert("RGB")
    box = (LEFT, TOP, LEFT + WIDTH, TOP + HEIGHT)
    picture = picture.resize(OUT_SIZE, Image.Resampling.LANCZOS, box=box)
    picture.save(sys.argv[2], quality=QUALITY, subsampling="4:2:0")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Make tests/http/pixels: what Pillow decodes from some of the files of tests/golden/image, as plain RGB PNG.

    python3 tests/http/make_pixels.py       (needs Pillow; the files are from version 13.0)

test_pictures.py sends each file and its pixels to the service, and asks for the same points, scores and descriptors.
"""
import pathlib

from PIL import Image, ImageOps

TESTS = pathlib.Path(__file__).resolve().parents[1]
NAMES = """
jpeg-exif-6.jpg
jpeg-s2x2-7x8-progressive.jpg jpeg-wide-s2x2-progressive.jpg jpeg-wide-s2x1-progressive.jpg
jpeg-s2x2-15x17-optimized.jpg jpeg-s2x1-15x17-optimized.jpg jpeg-s1x2-15x17-optimized.jpg jpeg-s4x1-15x17-optimized.jpg
jpeg-s2x2-9x1-restart.jpg jpeg-s1x2-8x8-restart.jpg jpeg-wide-s2x2.jpg
jpeg-grey-17x9.jpg jpeg-cmyk-17x9.jpg jpeg-cmyk-no-adobe-17x9.jpg jpeg-ycck-17x9.jpg
jpeg-trailing-17x9.jpg jpeg-mpo.jpg jpeg-arithmetic-17x9.jpg
png-c2-d16-5x9.png png-palette-alpha.png png-c3-d8-5x9.png png-c4-d8-5x9.png png-c6-d8-5x9.png
png-c0-d1-5x9.png png-c0-d2-5x9.png png-c0-d4-5x9.png png-c0-d1-interlaced-5x9.png png-c2-d8-interlaced-5x9.png
png-c3-d2-interlaced-5x9.png
gif-animated.gif webp-animated.webp png-animated.png
bmp-24-h40-18x9.bmp bmp-rle8-18x9.bmp ppm-p6-255-16x7.pnm ppm-p5-255-16x7.pnm webp-lossy-80-16x16.webp
webp-lossless-16x16.webp gif-global-interlaced-7x5.gif
""".split()

for name in NAMES:
    with Image.open(TESTS / "golden/image" / name) as picture:
        picture.convert("RGB").save(TESTS / f"http/pixels/{name}.png", optimize=True)
        if name == "jpeg-exif-6.jpg":
            ImageOps.exif_transpose(picture).convert("RGB").save(TESTS / f"http/pixels/{name}.turned.png", optimize=True)

# The frame of the tests is 64x64: shrunk and enlarged to it by Pillow.
for name, source in (("down", TESTS.parent / "sample_data/bridge.jpg"), ("up", TESTS / "golden/image/jpeg-s2x2-15x17-optimized.jpg")):
    with Image.open(source) as picture:
        small = picture.convert("RGB").resize((64, 64), Image.Resampling.BILINEAR)
        small.save(TESTS / f"http/pixels/resized-{name}.png", optimize=True)

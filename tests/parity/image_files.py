"""Picture files of every kind that the library reads, made from nothing.

`all_files()` yields Item objects: a name, the bytes of the file, and, where Pillow's own reading is not the rule of the
library, the pixels that are expected. Needs numpy and Pillow; JPEGs that Pillow cannot write are made by `cjpeg`
(Debian: libjpeg-turbo-progs).
"""
from __future__ import annotations

import dataclasses
import io
import struct
import subprocess
import zlib

import numpy as np
from PIL import Image

SIZES = [(1, 1), (1, 9), (9, 1), (2, 2), (3, 5), (7, 8), (8, 8), (15, 17), (16, 16), (17, 33), (33, 31), (64, 48)]


@dataclasses.dataclass
class Item:
    name: str
    data: bytes
    expected: np.ndarray | None = None  # None: whatever Pillow reads
    small: bool = True  # may be stored in the tree


def picture(width: int, height: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Slopes, edges and noise: smooth parts, saturated parts and hard steps."""
    rng = np.random.default_rng(seed * 7919 + width * 131 + height)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = []
    for c in range(channels):
        a, b = rng.uniform(-6, 6, 2)
        plane = 128 + a * (x - width / 2) + b * (y - height / 2)
        plane += 90 * (((x // 5).astype(int) + (y // 7).astype(int) + c) % 2)
        plane += rng.normal(0, 12, (height, width))
        planes.append(plane)
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


# ---------------------------------------------------------------------------------------------- JPEG


def save(image: Image.Image, kind: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def cjpeg(pixels: np.ndarray, *options: str) -> bytes:
    height, width = pixels.shape[:2]
    kind = b"P5" if pixels.ndim == 2 else b"P6"
    ppm = kind + b"\n%d %d\n255\n" % (width, height) + pixels.tobytes()
    return subprocess.run(["cjpeg", *options], input=ppm, stdout=subprocess.PIPE, check=True).stdout


def jpeg_segments(data: bytes):
    """(marker, start, end) of each segment before the pixels."""
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        end = at + 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
        yield marker, at, end
        if marker == 0xDA:
            return
        at = end


def without_segment(data: bytes, which: int) -> bytes:
    for marker, start, end in jpeg_segments(data):
        if marker == which:
            return data[:start] + data[end:]
    raise ValueError("no such segment")


def with_adobe_transform(data: bytes, transform: int) -> bytes:
    for marker, start, end in jpeg_segments(data):
        if marker == 0xEE:
            return data[: end - 1] + bytes([transform]) + data[end:]
    raise ValueError("no Adobe marker")


def tiff_orientation(value: int, big: bool, kind: int = 3) -> bytes:
    o = ">" if big else "<"
    body = struct.pack(o + "H", value) + b"\0\0" if kind == 3 else struct.pack(o + "I", value)
    entries = [
        struct.pack(o + "HHI", 0x010F, 2, 4) + b"abc\0",
        struct.pack(o + "HHI", 0x0112, kind, 1) + body,
        struct.pack(o + "HHI", 0x0128, 3, 1) + struct.pack(o + "H", 2) + b"\0\0",
    ]
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(o + "I", 8)
    return head + struct.pack(o + "H", len(entries)) + b"".join(entries) + struct.pack(o + "I", 0)


def with_app(data: bytes, marker: int, body: bytes) -> bytes:
    return data[:2] + struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body + data[2:]


def jpegs():
    for sampling in ["1x1", "2x1", "2x2", "1x2", "4x1", "4x2", "1x4", "2x4", "1x1,2x1,1x2", "2x2,2x1,1x2",
                     "2x2,1x1,2x1", "1x1,1x1,2x2", "2x1,1x1,2x1"]:
        for i, (w, h) in enumerate(SIZES):
            if "," in sampling and i % 3:
                continue
            options = ["-sample", sampling, "-quality", ["95", "75", "30"][i % 3]]
            kind = ""
            if i % 4 == 1:
                options.append("-progressive")
                kind = "-progressive"
            elif i % 4 == 2:
                options += ["-restart", "1B"]
                kind = "-restart"
            elif i % 4 == 3:
                options.append("-optimize")
                kind = "-optimized"
            name = f"jpeg-s{sampling.replace(',', '_')}-{w}x{h}{kind}"
            yield Item(name, cjpeg(picture(w, h, 3, i), *options))
        for kind in ([], ["-progressive"]):
            tag = "-progressive" if kind else ""
            data = cjpeg(picture(130, 67, 3, 5), "-sample", sampling, "-quality", "60", *kind)
            yield Item(f"jpeg-wide-s{sampling.replace(',', '_')}{tag}", data)
    for w, h in [(1, 1), (17, 9), (40, 33)]:
        yield Item(f"jpeg-grey-{w}x{h}", cjpeg(picture(w, h, 1)[..., 0], "-grayscale"))
        yield Item(f"jpeg-grey-progressive-{w}x{h}", cjpeg(picture(w, h, 1)[..., 0], "-grayscale", "-progressive"))
        yield Item(f"jpeg-rgb-{w}x{h}", cjpeg(picture(w, h), "-rgb"))
        yield Item(f"jpeg-arithmetic-{w}x{h}", cjpeg(picture(w, h), "-arithmetic"))
        yield Item(f"jpeg-low-{w}x{h}", cjpeg(picture(w, h), "-quality", "1"))
        yield Item(f"jpeg-float-dct-{w}x{h}", cjpeg(picture(w, h), "-dct", "float", "-quality", "100"))
        for sub in range(3):
            im = Image.fromarray(picture(w, h), "RGB")
            yield Item(f"jpeg-pillow-{sub}-{w}x{h}", save(im, "JPEG", subsampling=sub, quality=92))
        for progressive in (False, True):
            im = Image.fromarray(picture(w, h, 4), "CMYK")
            tag = "-progressive" if progressive else ""
            data = save(im, "JPEG", quality=90, progressive=progressive)
            yield Item(f"jpeg-cmyk{tag}-{w}x{h}", data)
            yield Item(f"jpeg-ycck{tag}-{w}x{h}", with_adobe_transform(data, 2))
            yield Item(f"jpeg-cmyk-no-adobe{tag}-{w}x{h}", without_segment(data, 0xEE))
        rgb = save(Image.fromarray(picture(w, h), "RGB"), "JPEG", quality=85)
        yield Item(f"jpeg-no-jfif-{w}x{h}", without_segment(rgb, 0xE0))
        yield Item(f"jpeg-trailing-{w}x{h}", rgb + b"trailing garbage \xff\xd8\xff" * 3)
        yield Item(f"jpeg-junk-between-{w}x{h}", rgb[:2] + b"\xff\xff\xff" + rgb[2:])
    base = save(Image.fromarray(picture(20, 13), "RGB"), "JPEG", quality=85)
    for value in range(0, 10):
        body = b"Exif\0\0" + tiff_orientation(value, value % 2 == 0, 3 if value < 5 else 4)
        yield Item(f"jpeg-exif-{value}", with_app(base, 0xE1, body))
    xmp = b'http://ns.adobe.com/xap/1.0/\0<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    yield Item("jpeg-xmp-6", with_app(base, 0xE1, xmp))
    yield Item("jpeg-icc", save(Image.fromarray(picture(20, 13), "RGB"), "JPEG", icc_profile=b"not a profile" * 9000))
    frames = [Image.fromarray(picture(24, 18, 3, s), "RGB") for s in range(2)]
    yield Item("jpeg-mpo", save(frames[0], "MPO", save_all=True, append_images=frames[1:]))


# ----------------------------------------------------------------------------------------------- PNG

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_filter(row: bytes, above: bytes, step: int, kind: int) -> bytes:
    out = bytearray([kind])
    for i, value in enumerate(row):
        a = row[i - step] if i >= step else 0
        b = above[i]
        c = above[i - step] if i >= step else 0
        p = a + b - c
        nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        out.append((value - [0, a, b, (a + b) // 2, nearest][kind]) & 255)
    return bytes(out)


def png_pass(samples: np.ndarray, depth: int) -> bytes:
    """Rows of (height, width, channels) samples, packed, with a filter that changes from row to row."""
    height, width, channels = samples.shape
    step = max(1, depth * channels // 8)
    above = None
    out = b""
    for y in range(height):
        flat = samples[y].reshape(-1)
        if depth == 16:
            row = flat.astype(">u2").tobytes()
        elif depth == 8:
            row = flat.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(int(v), f"0{depth}b") for v in flat)
            bits += "0" * (-len(bits) % 8)
            row = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
        out += png_filter(row, above or bytes(len(row)), step, y % 5)
        above = row
    return out


def png(samples: np.ndarray, depth: int, colour: int, interlaced: bool = False, before: bytes = b"",
        after: bytes = b"", pieces: int = 1) -> bytes:
    height, width = samples.shape[:2]
    if interlaced:
        raw = b"".join(png_pass(samples[y::dy, x::dx], depth) for x, y, dx, dy in ADAM7
                       if samples[y::dy, x::dx].size)
    else:
        raw = png_pass(samples, depth)
    packed = zlib.compress(raw)
    cut = max(1, len(packed) // pieces)
    idat = b"".join(png_chunk(b"IDAT", packed[i : i + cut]) for i in range(0, len(packed), cut))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + before + idat + after + png_chunk(b"IEND", b"")


def png_samples(width: int, height: int, depth: int, colour: int, seed: int = 0) -> np.ndarray:
    if depth == 16:
        high = picture(width, height, CHANNELS[colour], seed).astype(np.uint16)
        low = picture(width, height, CHANNELS[colour], seed + 1).astype(np.uint16)
        return high << 8 | low
    return picture(width, height, CHANNELS[colour], seed) >> (8 - depth)


def palette(entries: int) -> bytes:
    rng = np.random.default_rng(entries)
    return png_chunk(b"PLTE", rng.integers(0, 256, 3 * entries, dtype=np.uint8).tobytes())


def grey_of(plane: np.ndarray) -> np.ndarray:
    return np.repeat(plane[..., None].astype(np.uint8), 3, -1)


def pngs():
    for colour, depths in [(0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16))]:
        for depth in depths:
            for interlaced in (False, True):
                for w, h in [(1, 1), (3, 2), (5, 9), (17, 16), (33, 12)]:
                    samples = png_samples(w, h, depth, colour)
                    before = palette(1 << depth) if colour == 3 else b""
                    data = png(samples, depth, colour, interlaced, before)
                    expected = grey_of(samples[..., 0] >> 8) if (colour, depth) == (0, 16) else None
                    tag = "-interlaced" if interlaced else ""
                    yield Item(f"png-c{colour}-d{depth}{tag}-{w}x{h}", data, expected)
    s8 = png_samples(19, 11, 8, 3)
    yield Item("png-palette-short", png(s8, 8, 3, False, palette(100)))
    yield Item("png-palette-alpha", png(s8, 8, 3, False, palette(256) + png_chunk(b"tRNS", bytes(range(256)))))
    yield Item("png-palette-alpha-one", png(s8, 8, 3, True, palette(256) + png_chunk(b"tRNS", b"\xff\0\xff")))
    rgb = png_samples(19, 11, 8, 2)
    key = b"".join(bytes([0, int(v)]) for v in rgb[0, 0])
    yield Item("png-rgb-key", png(rgb, 8, 2, False, png_chunk(b"tRNS", key)))
    grey = png_samples(19, 11, 8, 0)
    yield Item("png-grey-key", png(grey, 8, 0, False, png_chunk(b"tRNS", bytes([0, int(grey[0, 0, 0])]))))
    yield Item("png-rgb-plte", png(rgb, 8, 2, False, palette(7)))
    yield Item("png-pieces", png(rgb, 8, 2, False, b"", b"", 17))
    yield Item("png-gamma", png(rgb, 8, 2, False, png_chunk(b"gAMA", struct.pack(">I", 45455))))
    yield Item("png-sbit", png(rgb, 8, 2, False, png_chunk(b"sBIT", b"\5\6\5")))
    yield Item("png-background", png(rgb, 8, 2, False, png_chunk(b"bKGD", bytes(6))))
    yield Item("png-trailing", png(rgb, 8, 2) + b"more")
    for value in (1, 3, 6, 8):
        exif = png_chunk(b"eXIf", tiff_orientation(value, True))
        yield Item(f"png-exif-{value}", png(rgb, 8, 2, False, exif))
        yield Item(f"png-exif-after-{value}", png(rgb, 8, 2, False, b"", exif))
    frames = [Image.fromarray(picture(21, 15, 3, s), "RGB") for s in range(3)]
    yield Item("png-animated", save(frames[0], "PNG", save_all=True, append_images=frames[1:]))
    yield Item("png-animated-default", save(frames[0], "PNG", save_all=True, append_images=frames[1:],
                                            default_image=True))


# ------------------------------------------------------------------------------------------- the rest


def gif_frame(x: int, y: int, w: int, h: int, indices: np.ndarray, interlaced: bool, table: bytes = b"") -> bytes:
    """A frame whose codes are all nine bits and literal, cleared before the table grows."""
    order = range(h)
    if interlaced:
        order = [r for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for r in range(first, h, step)]
    codes = []
    for n, value in enumerate(v for r in order for v in indices[r]):
        if n % 200 == 0:
            codes.append(256)
        codes.append(int(value))
    codes.append(257)
    bits = "".join(format(c, "09b")[::-1] for c in codes)
    bits += "0" * (-len(bits) % 8)
    packed = bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))
    blocks = b"".join(bytes([len(packed[i : i + 255])]) + packed[i : i + 255] for i in range(0, len(packed), 255))
    flags = (0x40 if interlaced else 0) | (0x80 | (len(table) // 3).bit_length() - 2 if table else 0)
    return b"," + struct.pack("<HHHHB", x, y, w, h, flags) + table + b"\x08" + blocks + b"\0"


def gif(width: int, height: int, body: bytes, table: bytes = b"", background: int = 0) -> bytes:
    flags = 0x80 | (len(table) // 3).bit_length() - 2 if table else 0
    return b"GIF89a" + struct.pack("<HHBBB", width, height, flags, background, 0) + table + body + b";"


def gifs():
    rng = np.random.default_rng(5)
    table = rng.integers(0, 256, 768, dtype=np.uint8).tobytes()
    ramp = bytes(v for i in range(256) for v in (i, i, i))
    clear = b"!\xf9\x04\x01\0\0\x21\0"
    for interlaced in (False, True):
        tag = "-interlaced" if interlaced else ""
        for w, h in [(1, 1), (7, 5), (20, 30)]:
            indices = picture(w, h, 1)[..., 0]
            frame = gif_frame(0, 0, w, h, indices, interlaced)
            yield Item(f"gif-global{tag}-{w}x{h}", gif(w, h, frame, table))
            yield Item(f"gif-local{tag}-{w}x{h}", gif(w, h, gif_frame(0, 0, w, h, indices, interlaced, table)))
            yield Item(f"gif-no-table{tag}-{w}x{h}", gif(w, h, frame))
            yield Item(f"gif-grey{tag}-{w}x{h}", gif(w, h, frame, ramp))
            yield Item(f"gif-offset{tag}-{w}x{h}", gif(w + 9, h + 4, gif_frame(5, 3, w, h, indices, interlaced), table, 7))
            yield Item(f"gif-clear{tag}-{w}x{h}", gif(w + 9, h + 4, clear + gif_frame(5, 3, w, h, indices, interlaced),
                                                      table, 7))
            yield Item(f"gif-over{tag}-{w}x{h}", gif(3, 3, gif_frame(5, 3, w, h, indices, interlaced), table, 7))
    short = table[:48]
    yield Item("gif-short-table", gif(20, 30, gif_frame(0, 0, 20, 30, picture(20, 30, 1)[..., 0], False), short))
    frames = [Image.fromarray(picture(24, 18, 3, s), "RGB").quantize(32) for s in range(3)]
    yield Item("gif-pillow", save(frames[0], "GIF"))
    yield Item("gif-animated", save(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50))
    yield Item("gif-comment", save(frames[0], "GIF", comment=b"x" * 600))


def bmp(width, height, bits, rows: bytes, header=40, compression=0, table=b"", colours=0, masks=b"", offset=None):
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(rows), 2835, 2835, colours, 0)
        if header >= 52:
            info += masks
            masks = b""
        info += bytes(header - len(info))
    at = 14 + len(info) + len(masks) + len(table) if offset is None else offset
    return b"BM" + struct.pack("<IHHI", at + len(rows), 0, 0, at) + info + masks + table + rows


def bmp_rows(values: np.ndarray, bits: int) -> bytes:
    out = b""
    for row in values:
        if bits < 8:
            text = "".join(format(int(v), f"0{bits}b") for v in row)
            text += "0" * (-len(text) % 8)
            line = bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
        else:
            line = row.tobytes()
        out += line + bytes(-len(line) % 4)
    return out


def rle8(values: np.ndarray) -> bytes:
    out = b""
    for n, row in enumerate(values):
        x = 0
        while x < len(row):
            run = 1
            while x + run < len(row) and row[x + run] == row[x] and run < 255:
                run += 1
            if run == 1 and x + 3 <= len(row):
                part = row[x : x + 3].tobytes()
                out += bytes([0, 3]) + part + b"\0"
                x += 3
            else:
                out += bytes([run, row[x]])
                x += run
        out += b"\0\0" if n + 1 < len(values) else b"\0\1"
    return out


def rle4(values: np.ndarray) -> bytes:
    out = b""
    for row in values:
        for x in range(0, len(row), 2):
            pair = row[x : x + 2]
            out += bytes([len(pair), int(pair[0]) << 4 | int(pair[-1])])
        out += b"\0\0"
    return out + b"\0\1"


def bmps():
    rng = np.random.default_rng(6)
    for w, h in [(1, 1), (5, 3), (18, 9), (33, 20)]:
        rgb = picture(w, h)
        bgr = rgb[..., ::-1]
        for header in (12, 40, 52, 56, 64, 108, 124):
            if header not in (12, 40) and w != 18:
                continue
            yield Item(f"bmp-24-h{header}-{w}x{h}", bmp(w, h, 24, bmp_rows(np.ascontiguousarray(bgr), 24), header))
            entry = 3 if header == 12 else 4
            for bits in (1, 4, 8):
                values = picture(w, h, 1, 3)[..., 0] >> (8 - bits)
                table = rng.integers(0, 256, (1 << bits) * entry, dtype=np.uint8).tobytes()
                yield Item(f"bmp-{bits}-h{header}-{w}x{h}", bmp(w, h, bits, bmp_rows(values, bits), header, 0, table))
        flipped = bmp_rows(np.ascontiguousarray(bgr), 24)
        yield Item(f"bmp-24-top-down-{w}x{h}", bmp(w, -h, 24, flipped))
        x32 = np.ascontiguousarray(np.concatenate([bgr, picture(w, h, 1, 9)], -1))
        yield Item(f"bmp-32-{w}x{h}", bmp(w, h, 32, bmp_rows(x32, 32)))
        for name, masks in [("bgrx", (0xFF0000, 0xFF00, 0xFF, 0)), ("xbgr", (0xFF000000, 0xFF0000, 0xFF00, 0)),
                            ("abgr", (0xFF000000, 0xFF0000, 0xFF00, 0xFF)),
                            ("rgba", (0xFF, 0xFF00, 0xFF0000, 0xFF000000)), ("none", (0, 0, 0, 0)),
                            ("bgar", (0xFF000000, 0xFF00, 0xFF, 0xFF0000))]:
            packed = struct.pack("<4I", *masks)
            yield Item(f"bmp-32-{name}-{w}x{h}", bmp(w, h, 32, bmp_rows(x32, 32), 124, 3, b"", 0, packed))
        yield Item(f"bmp-32-masks-behind-{w}x{h}",
                   bmp(w, h, 32, bmp_rows(x32, 32), 40, 3, b"", 0, struct.pack("<3I", 0xFF0000, 0xFF00, 0xFF)))
        v16 = (rng.integers(0, 65536, (h, w))).astype("<u2")
        yield Item(f"bmp-16-{w}x{h}", bmp(w, h, 16, bmp_rows(v16, 16)))
        yield Item(f"bmp-16-565-{w}x{h}",
                   bmp(w, h, 16, bmp_rows(v16, 16), 40, 3, b"", 0, struct.pack("<3I", 0xF800, 0x7E0, 0x1F)))
        yield Item(f"bmp-16-555-{w}x{h}",
                   bmp(w, h, 16, bmp_rows(v16, 16), 40, 3, b"", 0, struct.pack("<3I", 0x7C00, 0x3E0, 0x1F)))
        table8 = rng.integers(0, 256, 1024, dtype=np.uint8).tobytes()
        v8 = (picture(w, h, 1, 4)[..., 0] // 64 * 64).astype(np.uint8)
        yield Item(f"bmp-rle8-{w}x{h}", bmp(w, h, 8, rle8(v8), 40, 1, table8, 256))
        yield Item(f"bmp-rle4-{w}x{h}", bmp(w, h, 4, rle4(v8 >> 4), 40, 2, table8[:64], 16))
        grey = b"".join(bytes([i, i, i, 0]) for i in range(256))
        yield Item(f"bmp-8-grey-{w}x{h}", bmp(w, h, 8, bmp_rows(picture(w, h, 1)[..., 0], 8), 40, 0, grey))
        yield Item(f"bmp-8-short-table-{w}x{h}",
                   bmp(w, h, 8, bmp_rows(picture(w, h, 1)[..., 0] // 3, 8), 40, 0, table8[:400], 100))
        yield Item(f"bmp-1-grey-{w}x{h}",
                   bmp(w, h, 1, bmp_rows(picture(w, h, 1)[..., 0] >> 7, 1), 40, 0, b"\0\0\0\0\xff\xff\xff\0"))
        yield Item(f"bmp-offset-{w}x{h}", bmp(w, h, 8, bmp_rows(picture(w, h, 1)[..., 0], 8), 40, 0, table8, 0, b"", 54))


def pnms():
    for w, h in [(1, 1), (9, 4), (16, 7)]:
        rgb, grey = picture(w, h), picture(w, h, 1)[..., 0]
        bits = (grey > 128).astype(int)
        packed = np.packbits(bits, axis=1).tobytes()
        yield Item(f"ppm-p4-{w}x{h}", b"P4\n%d %d\n" % (w, h) + packed)
        yield Item(f"ppm-p1-{w}x{h}", b"P1\n# comment\n%d %d\n" % (w, h) + b"\n".join(
            b"".join(b"%d" % v for v in row) for row in bits))
        for maxval in (1, 15, 100, 255):
            g, c = grey.astype(int) * maxval // 255, rgb.astype(int) * maxval // 255
            yield Item(f"ppm-p5-{maxval}-{w}x{h}", b"P5 %d %d %d\n" % (w, h, maxval) + g.astype(np.uint8).tobytes())
            yield Item(f"ppm-p6-{maxval}-{w}x{h}", b"P6\n%d\n%d #x\n%d\n" % (w, h, maxval) + c.astype(np.uint8).tobytes())
            yield Item(f"ppm-p2-{maxval}-{w}x{h}", b"P2 %d %d %d\n" % (w, h, maxval) + b" ".join(
                b"%d" % v for v in g.reshape(-1)))
            yield Item(f"ppm-p3-{maxval}-{w}x{h}", b"P3 %d %d %d # end\n" % (w, h, maxval) + b"\n".join(
                b"%d" % v for v in c.reshape(-1)) + b"\n")
        for maxval in (256, 1023, 4095, 65535):
            g, c = grey.astype(int) * maxval // 255, rgb.astype(int) * maxval // 255
            wide = np.minimum(65535, np.rint(g / maxval * 65535)).astype(int)
            expected = grey_of(wide >> 8)
            yield Item(f"ppm-p5-{maxval}-{w}x{h}", b"P5 %d %d %d\n" % (w, h, maxval) + g.astype(">u2").tobytes(), expected)
            yield Item(f"ppm-p2-{maxval}-{w}x{h}", b"P2 %d %d %d\n" % (w, h, maxval) + b" ".join(
                b"%d" % v for v in g.reshape(-1)), expected)
            yield Item(f"ppm-p6-{maxval}-{w}x{h}", b"P6 %d %d %d\n" % (w, h, maxval) + c.astype(">u2").tobytes())
        yield Item(f"ppm-p5-over-{w}x{h}", b"P5 %d %d 100\n" % (w, h) + grey.tobytes())
        yield Item(f"ppm-trailing-{w}x{h}", b"P6 %d %d 255\n" % (w, h) + rgb.tobytes() + b"P6 1 1 255\nabc")


def webps():
    for w, h in [(1, 1), (16, 16), (33, 17), (60, 41)]:
        rgb, rgba = Image.fromarray(picture(w, h), "RGB"), Image.fromarray(picture(w, h, 4), "RGBA")
        for quality in (10, 80, 100):
            yield Item(f"webp-lossy-{quality}-{w}x{h}", save(rgb, "WEBP", quality=quality))
        yield Item(f"webp-lossless-{w}x{h}", save(rgb, "WEBP", lossless=True))
        yield Item(f"webp-alpha-{w}x{h}", save(rgba, "WEBP", quality=80))
        yield Item(f"webp-alpha-lossless-{w}x{h}", save(rgba, "WEBP", lossless=True, exact=True))
    frames = [Image.fromarray(picture(40, 30, 3, s), "RGB") for s in range(3)]
    yield Item("webp-animated", save(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True))
    for value in (1, 6, 7):
        yield Item(f"webp-exif-{value}", save(frames[0], "WEBP", exif=tiff_orientation(value, False)))


def large():
    for sampling in ("1x1", "2x1", "2x2", "1x2", "4x1"):
        for kind in ([], ["-progressive"]):
            data = cjpeg(picture(1031, 517), "-sample", sampling, *kind)
            yield Item(f"jpeg-large-s{sampling}{'-progressive' if kind else ''}", data, small=False)
    yield Item("png-large", save(Image.fromarray(picture(1031, 517), "RGB"), "PNG"), small=False)


def all_files():
    for maker in (jpegs, pngs, gifs, bmps, pnms, webps, large):
        yield from maker()

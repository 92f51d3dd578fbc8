"""Strings that a schema cannot describe, for schemathesis: pictures, sizes of frames, rectangles, numbers as text."""
import base64
import struct
import zlib

import schemathesis
from hypothesis import strategies as st


def png(side, value):
    rows = b"".join(b"\0" + bytes([(value * (x + y)) % 256 for x in range(side)]) for y in range(side))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


pictures = st.builds(png, st.integers(1, 24), st.integers(0, 255))
schemathesis.openapi.format("picture", pictures.map(lambda data: base64.b64encode(data).decode()))
schemathesis.openapi.format("picture-bytes", pictures)
schemathesis.openapi.format("frame-size", st.one_of(
    st.just("native"), st.integers(1, 200).map("max:{}".format),
    st.tuples(st.integers(1, 20), st.integers(1, 20)).map(lambda p: f"{8 * p[0]}x{8 * p[1]}")))
schemathesis.openapi.format("rectangle", st.tuples(*[st.integers(1, 9999)] * 4).map(lambda r: ",".join(map(str, r))))
schemathesis.openapi.format("number-any", st.floats(-1e30, 1e30).map(repr))
schemathesis.openapi.format("number-max_keypoints", st.integers(-1, 10**9).map(str))
for name in ("nms_radius", "border"):
    schemathesis.openapi.format("number-" + name, st.integers(0, 64).map(str))

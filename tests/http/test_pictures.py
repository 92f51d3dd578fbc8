"""Picture files as people send them."""
import json
import os
import struct
import unittest
import zlib

from harness import ServerTest, b64, blank, checkers, noise, png

SAMPLE = "sample_data/bridge.jpg"


def with_exif(jpeg, orientation):
    """The JPEG with an EXIF segment that holds nothing but an orientation."""
    tiff = b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHIHH", 0x112, 3, 1, orientation, 0) + b"\0\0\0\0"
    segment = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:]


def icc_profile():
    """A profile of three primaries of which red and blue have changed places: who heeds it sees other colours."""
    def number(v):
        return struct.pack(">i", round(v * 65536))

    def xyz(*v):
        return b"XYZ \0\0\0\0" + b"".join(number(x) for x in v)

    text = b"text\0\0\0\0none\0"
    name = b"desc\0\0\0\0\0\0\0\5swap\0" + bytes(78)
    gamma = b"curv\0\0\0\0\0\0\0\1\2\x33\0\0"
    tags = [(b"desc", name), (b"cprt", text), (b"wtpt", xyz(0.9642, 1, 0.8249)), (b"rXYZ", xyz(0.1431, 0.0606, 0.7141)),
            (b"gXYZ", xyz(0.3851, 0.7169, 0.0971)), (b"bXYZ", xyz(0.4360, 0.2225, 0.0139)), (b"rTRC", gamma), (b"gTRC", gamma), (b"bTRC", gamma)]
    table, data, at = struct.pack(">I", len(tags)), b"", 128 + 4 + 12 * len(tags)
    for signature, body in tags:
        body += bytes(-len(body) % 4)
        table += signature + struct.pack(">II", at + len(data), len(body))
        data += body
    head = struct.pack(">I4sI4s4s4s", at + len(data), b"\0\0\0\0", 0x02100000, b"mntr", b"RGB ", b"XYZ ") + bytes(12) + b"acsp"
    head = head.ljust(68, b"\0") + number(0.9642) + number(1) + number(0.8249)
    return head.ljust(128, b"\0") + table + data


def with_profile(jpeg):
    segment = b"ICC_PROFILE\0\1\1" + icc_profile()
    return jpeg[:2] + b"\xff\xe2" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:]


def png_header(width, height, body=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", body) + chunk(b"IEND", b""))


class Pictures(ServerTest):
    options = ("--max-pixels", "4000000")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(SAMPLE, "rb") as f:
            cls.jpeg = f.read()

    def ask(self, picture, query="", status=200, kind="application/octet-stream"):
        answer = self.server.post("/predict?return_descriptors=false&" + query, picture, kind)
        self.assertEqual(answer.status, status, answer.body[:300])
        return answer.json()

    def refuse(self, picture, *words, status=400):
        self.assertError(self.server.post("/predict", picture, "image/jpeg"), status, *words)
        answer = self.server.predict(image=b64(picture))
        self.assertError(answer, status, *words)

    # 1
    def test_exif(self):
        turned = with_exif(self.jpeg, 6)
        found = self.ask(turned)
        self.assertEqual(found["original_size"], {"height": 900, "width": 1600})
        self.assertEqual(found["keypoints"], self.ask(self.jpeg)["keypoints"])
        self.assertIn("EXIF", found["warnings"][0])
        found = self.ask(turned, "exif=apply")
        self.assertEqual(found["original_size"], {"height": 1600, "width": 900})
        self.assertEqual(found["warnings"], [])

    # 1-5, 10, 11, 13, 15, 17, 26, 27: the pixels are Pillow's (make_pixels.py)
    def test_every_kind_gives_the_points_of_its_pixels(self):
        query = "keypoint_threshold=0&nms_radius=1&border=0&max_keypoints=200"

        def features(picture, more=""):
            answer = self.server.post(f"/predict?{query}{more}", picture, "application/octet-stream")
            self.assertEqual(answer.status, 200, answer.body[:300])
            found = answer.json()
            self.assertGreater(found["num_keypoints"], 0)
            return {k: found[k] for k in ("keypoints", "scores", "descriptors", "original_size")}, found["warnings"]

        names = sorted(name for name in os.listdir("tests/http/pixels") if not name.endswith(".turned.png") and not name.startswith("resized"))
        self.assertGreater(len(names), 35)
        for name in names:
            with self.subTest(name):
                with open("tests/golden/image/" + name.removesuffix(".png"), "rb") as f:
                    picture = f.read()
                with open("tests/http/pixels/" + name, "rb") as f:
                    pixels = f.read()
                found, warnings = features(picture)
                self.assertEqual(found, features(pixels)[0])
                several = "animated" in name or "mpo" in name
                self.assertEqual(any("several pictures, the first is used" in w for w in warnings), several, warnings)
                if "exif-6" in name:
                    with open("tests/http/pixels/" + name.replace(".png", ".turned.png"), "rb") as f:
                        self.assertEqual(features(picture, "&exif=apply")[0], features(f.read())[0])

    # 7
    def test_colour_profiles_are_ignored(self):
        plain, profiled = self.ask(self.jpeg, "resize=160x120"), self.ask(with_profile(self.jpeg), "resize=160x120")
        self.assertTrue(plain["keypoints"])
        for key in ("keypoints", "scores"):
            self.assertEqual(plain[key], profiled[key])

    # 11
    def test_kinds_of_jpeg_that_are_not_read(self):
        frame = self.jpeg.index(b"\xff\xc0")
        self.refuse(self.jpeg[:frame + 4] + b"\x0c" + self.jpeg[frame + 5:], "image: ")  # 12 bits
        for process in (0xC3, 0xC5, 0xCB):  # lossless, hierarchical, lossless with arithmetic coding
            self.refuse(self.jpeg[:frame + 1] + bytes([process]) + self.jpeg[frame + 2:], "image: ")

    # 27, 31
    def test_kinds_of_files_that_are_not_read(self):
        for data in (b"II*\0\x08\0\0\0" + bytes(100), b"MM\0*\0\0\0\x08" + bytes(100), b"\0\0\1\0\1\0\x10\x10" + bytes(100),
                     b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(100), b"\0\0\0\x20ftypavif" + bytes(100), b"\0\0\0\x20ftypheic" + bytes(100)):
            self.refuse(data, "JPEG, PNG, WebP, GIF, BMP and PPM are read")
            self.assertError(self.server.post("/predict", data, "application/octet-stream"), 415, "JPEG, PNG, WebP, GIF, BMP and PPM are read")

    # 32
    def test_luma_of_the_primaries(self):
        def bars(*values):
            return png(64, 64, lambda x, y: values[(x // 16 + y // 16) % len(values)], colour=2 if isinstance(values[0], bytes) else 0)

        coloured = bars(b"\xff\0\0", b"\0\xff\0", b"\0\0\xff")
        query = "channel=luma&keypoint_threshold=0"
        self.assertEqual(self.ask(coloured, query)["scores"], self.ask(bars(76, 150, 29), query)["scores"])
        self.assertNotEqual(self.ask(coloured, query)["scores"], self.ask(bars(76, 149, 29), query)["scores"])

    # 33
    def test_resizing_is_that_of_pillow(self):
        with open("tests/golden/image/jpeg-s2x2-15x17-optimized.jpg", "rb") as f:
            sources = {"down": self.jpeg, "up": f.read()}
        for name, source in sources.items():
            with open(f"tests/http/pixels/resized-{name}.png", "rb") as f:
                resized = f.read()
            query = "keypoint_threshold=0"
            found = self.ask(source, query)
            self.assertTrue(found["scores"])
            self.assertEqual(found["scores"], self.ask(resized, query)["scores"])

    # 8, 10
    def test_cut_and_trailing(self):
        for cut in (2, 3, 20, 200, len(self.jpeg) // 2, len(self.jpeg) - 100):
            self.refuse(self.jpeg[:cut], "image: ")
        self.refuse(self.jpeg[:len(self.jpeg) // 2], "JPEG", "cut short")
        self.assertEqual(self.ask(self.jpeg + b"garbage" * 100)["keypoints"], self.ask(self.jpeg)["keypoints"])

    # 12, 13: the high byte of 16 bits
    def test_sixteen_bits(self):
        deep = png(64, 64, lambda x, y: struct.pack(">H", (255 * ((x // 8 + y // 8) % 2)) << 8 | 0x34), depth=16)
        self.assertEqual(self.ask(deep)["keypoints"], self.ask(checkers())["keypoints"])
        deep = png(64, 64, lambda x, y: struct.pack(">HHH", (255 * ((x // 8 + y // 8) % 2)) << 8 | 0x34, 7, 9), depth=16, colour=2)
        self.assertEqual(self.ask(deep)["keypoints"], self.ask(checkers())["keypoints"])

    # 15-17: alpha is dropped, few bits are scaled
    def test_kinds_of_png(self):
        expected = self.ask(checkers())["keypoints"]
        grey_alpha = png(64, 64, lambda x, y: bytes([255 * ((x // 8 + y // 8) % 2), 7]), colour=4)
        self.assertEqual(self.ask(grey_alpha)["keypoints"], expected)
        rgba = png(64, 64, lambda x, y: bytes([255 * ((x // 8 + y // 8) % 2), 1, 2, 0]), colour=6)
        self.assertEqual(self.ask(rgba)["keypoints"], expected)

    # 18
    def test_broken_png(self):
        whole = checkers()
        for i in (30, 45, 60):
            self.refuse(whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1:], "image: ")

    # 20, 21, 22, 30
    def test_sizes(self):
        self.refuse(png_header(10000, 10000), "more than the 4000000 pixels", status=413)
        self.refuse(png_header(2**31 - 1, 1), status=413)
        self.refuse(png_header(0, 5))
        self.ask(png_header(100, 100, zlib.compress(b"\0" * 10_000_000)))  # more data than pixels: the rest is not read
        self.ask(blank(2000, 2000))
        self.refuse(png_header(2001, 2000), "more than the 4000000 pixels", status=413)

    # 23, 25
    def test_small_and_plain(self):
        found = self.ask(blank(1, 1))
        self.assertEqual((found["num_keypoints"], found["original_size"]), (0, {"height": 1, "width": 1}))
        self.assertEqual(found["scale"], {"x": 1 / 64, "y": 1 / 64})
        self.assertEqual(self.ask(blank())["num_keypoints"], 0)
        self.assertTrue(0 < self.ask(noise(), "keypoint_threshold=0&nms_radius=0")["num_keypoints"] <= 1024)
        corners = self.ask(checkers(64, 16), "max_keypoints=9&nms_radius=4")["keypoints"]
        self.assertTrue(corners)
        for x, y in corners:
            self.assertLessEqual(min(abs(x + 0.5 - 16 * k) for k in range(5)), 3)
            self.assertLessEqual(min(abs(y + 0.5 - 16 * k) for k in range(5)), 3)

    # 26, 27
    def test_other_formats(self):
        rows = b"".join(bytes([255 * ((x // 8 + y // 8) % 2)]) for y in range(64) for x in range(64))
        expected = self.ask(checkers())["keypoints"]
        self.assertEqual(self.ask(b"P5 64 64 255\n" + rows)["keypoints"], expected)
        self.assertEqual(self.ask(b"P6 64 64 255\n" + bytes(v for p in rows for v in (p, p, p)))["keypoints"], expected)
        bottom_up = b"".join(bytes(v for p in rows[64 * y:64 * y + 64] for v in (p, p, p)) for y in range(63, -1, -1))
        bmp = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54 + len(bottom_up), 0, 0, 54, 40, 64, 64, 1, 24, 0, 0, 0, 0, 0, 0) + bottom_up
        self.assertEqual(self.ask(bmp)["keypoints"], expected)

    # 28, 31
    def test_what_is_no_picture(self):
        for data in (b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7\n", b"hello", b"<!doctype html>", b"\0" * 100,
                     b"II*\0\x08\0\0\0", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"BM", b"RIFF\0\0\0\0WEBP", b"P6"):
            self.refuse(data, "image: ")

    # 29
    def test_first_bytes_win(self):
        expected = self.ask(checkers())["keypoints"]
        for kind in ("image/jpeg", "image/webp"):
            self.assertEqual(self.ask(checkers(), kind=kind)["keypoints"], expected)
        self.assertEqual(self.server.predict(image="data:image/jpeg;base64," + b64(checkers()),
                                             return_descriptors=False).json()["keypoints"], expected)

    def test_frames_over_the_limit(self):
        self.assertError(self.server.post("/predict?resize=8000x8000", blank(), "image/png"), 413, "max_frame_pixels")
        self.assertError(self.server.post("/predict?resize=max:16000", blank(), "image/png"), 413, "max_frame_pixels")


if __name__ == "__main__":
    unittest.main()

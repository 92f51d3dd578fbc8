"""Bodies of /predict: base64, JSON, parameters, forms, answers."""
import json
import struct
import unittest

from harness import ServerTest, b64, blank, checkers, noise, npz, png


def multipart(parts, boundary="bOuNd"):
    """parts: (name, bytes) or (name, bytes, extra header)."""
    out = b""
    for name, data, *extra in parts:
        head = [f'Content-Disposition: form-data; name="{name}"; filename="a.png"'] + extra
        out += b"--" + boundary.encode() + b"\r\n" + "\r\n".join(head).encode() + b"\r\n\r\n" + data + b"\r\n"
    return out + b"--" + boundary.encode() + b"--\r\n"


class Requests(ServerTest):
    def ask(self, status=200, **fields):
        answer = self.server.predict(**fields)
        self.assertEqual(answer.status, status, answer.body[:300])
        return answer.json()

    def points(self, **fields):
        fields.setdefault("image", b64(checkers()))
        fields.setdefault("return_descriptors", False)
        return self.ask(**fields)["keypoints"]

    def refuse(self, body, *words, status=400, kind="application/json"):
        answer = self.server.post("/predict", body if isinstance(body, bytes) else json.dumps(body).encode(), kind)
        self.assertError(answer, status, *words)

    # ---- the answer
    def test_the_whole_answer(self):
        picture = noise(128, 96)
        found = self.ask(image=b64(picture), max_keypoints=10, keypoint_threshold=0)
        self.assertEqual(set(found), {"num_keypoints", "keypoints", "scores", "original_size", "image_size", "scale",
                                      "descriptors", "serving_path", "model", "warnings", "timing_ms"})
        self.assertEqual(found["original_size"], {"height": 96, "width": 128})
        self.assertEqual(found["image_size"], {"height": 64, "width": 64})
        self.assertEqual(found["scale"], {"x": 2.0, "y": 1.5})
        self.assertEqual(found["num_keypoints"], len(found["keypoints"]))
        self.assertEqual(found["scores"], sorted(found["scores"], reverse=True))
        self.assertEqual(set(found["serving_path"]) & {"traced", "device_nms", "engine", "device", "precision"},
                         {"traced", "device_nms", "engine", "device", "precision"})
        self.assertRegex(found["model"]["weights"], "sha256:[0-9a-f]{64}$")
        self.assertEqual(set(found["timing_ms"]), {"preprocess", "device_forward", "postprocess", "total", "queue"})
        d = found["descriptors"]
        self.assertEqual((d["format"], d["key"], d["dtype"], d["shape"]),
                         ("npz", "descriptors", "float16", [found["num_keypoints"], 256]))
        import base64
        arrays = npz(base64.b64decode(d["data"], validate=True))
        dtype, shape, data = arrays["descriptors"]
        self.assertEqual((dtype, shape), ("<f2", tuple(d["shape"])))
        for i in range(found["num_keypoints"]):
            row = struct.unpack("<256e", data[512 * i:512 * i + 512])
            self.assertAlmostEqual(sum(v * v for v in row), 1, delta=0.01)
        for x, y in found["keypoints"]:
            self.assertTrue(0 <= x <= 127 and 0 <= y <= 95)

    def test_no_points(self):
        import base64
        found = self.ask(image=b64(blank()), keypoint_threshold=1)
        self.assertEqual((found["num_keypoints"], found["keypoints"], found["scores"]), (0, [], []))
        self.assertEqual(found["descriptors"]["shape"], [0, 256])
        self.assertEqual(npz(base64.b64decode(found["descriptors"]["data"]))["descriptors"], ("<f2", (0, 256), b""))

    # 94
    def test_npz_answers(self):
        for n in (0, 1, 1000):
            answer = self.server.request("POST", f"/predict?max_keypoints={n}&keypoint_threshold=0&nms_radius=0&border=0",
                                         noise(), {"Content-Type": "image/png", "Accept": "application/x-npz"})
            self.assertEqual((answer.status, answer.header("content-type")), (200, "application/x-npz"))
            arrays = npz(answer.body)
            self.assertEqual(arrays["keypoints"][:2], ("<f4", (n, 2)))
            self.assertEqual(arrays["scores"][:2], ("<f4", (n,)))
            self.assertEqual(arrays["descriptors"][:2], ("<f2", (n, 256)))
        answer = self.server.post("/predict?return_descriptors=no", noise(), "image/png",
                                  {"Accept": "application/x-npz;q=1, application/json;q=0.5"})
        self.assertEqual(set(npz(answer.body)), {"keypoints", "scores"})
        answer = self.server.post("/predict", noise(), "image/png", {"Accept": "application/json, application/x-npz;q=0.5"})
        self.assertEqual(answer.header("content-type"), "application/json")

    # ---- base64: 34-41
    def test_base64_forms(self):
        picture = noise()
        plain = b64(picture)
        expected = self.points(image=plain)
        self.assertTrue(expected)
        spaced = "\n".join(plain[i:i + 76] for i in range(0, len(plain), 76)) + "\r\n"
        for form in ("data:image/png;base64," + plain, "data:;base64," + plain, plain.replace("+", "-").replace("/", "_"),
                     plain.rstrip("="), spaced, "DATA:image/jpeg;charset=x;BASE64," + plain):
            self.assertEqual(self.points(image=form), expected, form[:40])
        escaped = json.dumps({"image": plain, "return_descriptors": False}).replace("/", "\\/").encode()
        self.assertEqual(self.server.post("/predict", escaped).json()["keypoints"], expected)

    def test_base64_errors(self):
        for text, word in (("", "empty"), ("A", "left over"), ("AAAA%2BAA", "0x25 at offset 4"), ("AAAé", "offset 3"),
                           ("data:image/png;base64,", "empty"), ("data:image/png," + b64(blank()), ";base64,"),
                           ("AAAA====AAAA", "offset 8"), ("\0\0\0\0", "0x00"), ("!", "0x21 at offset 0")):
            self.refuse({"image": text}, "image", word)
        self.refuse({"image": b64(b"not a picture")}, "image")

    # ---- JSON: 43-59
    def test_image_of_the_wrong_type(self):
        self.refuse({}, "image", "missing")
        for value, word in ((None, "null"), (5, "a number"), (True, "a boolean"), ([], "an array"), ({}, "an object")):
            self.refuse({"image": value}, "image", word)

    def test_numbers(self):
        picture = b64(noise())
        for value in (5, "5", 5.0, "5.0", "5e0"):
            self.assertEqual(len(self.points(image=picture, max_keypoints=value, keypoint_threshold=0)), 5, value)
        raw = b'{"image": "%s", "max_keypoints": 1e3, "return_descriptors": false}' % picture.encode()
        self.assertEqual(self.server.post("/predict", raw).status, 200)
        for value in (True, 5.5, None, "five", "", [5], {}, -2, 1e99, "5 ", 2147483648):
            self.refuse({"image": picture, "max_keypoints": value}, "max_keypoints")
        for value in ("0.1", 0.1, 1, "1e-1", 0):
            self.ask(image=picture, keypoint_threshold=value)
        for value in (True, None, "x", "nan", "inf", 1e300):
            self.refuse({"image": picture, "keypoint_threshold": value}, "keypoint_threshold")

    def test_booleans(self):
        picture = b64(blank())
        for value, there in ((True, True), ("yes", True), (1, True), (1.0, True), ("TRUE", True), (False, False),
                             ("off", False), (0, False), ("No", False)):
            self.assertEqual("descriptors" in self.ask(image=picture, return_descriptors=value), there, value)
        for value in (2, None, "maybe", 0.5, [], "2"):
            self.refuse({"image": picture, "return_descriptors": value}, "return_descriptors")

    def test_not_json(self):
        picture = b64(blank()).encode()
        for body in (b'{"image": "%s", "keypoint_threshold": NaN}', b'{"image": "%s", "keypoint_threshold": Infinity}',
                     b'{"image": "%s", // comment\n}', b"{'image': '%s'}", b'{"image": "%s", "max_keypoints": 0x10}',
                     b'{"image": "%s", "max_keypoints": 010}', b'{"image": "%s", "max_keypoints": +1}',
                     b'{"image": "%s",}', b'{"image": "%s"', b'{"image": "%s"} {}', b'\xef\xbb\xbf{"image": "%s"}',
                     b'{"image": "%s", "x": "\xff"}', b'{"image": "%s", "x": "\\ud800"}'):
            self.refuse(body % picture, "JSON", "line 1")
        for body in (b"[]", b'"x"', b"5", b"null", b"true"):
            self.refuse(body, "object")
        self.refuse(b'{"image": ' + b"[" * 1000 + b"]" * 1000 + b"}", "nested")
        self.refuse(b'{"a": ' * 15 + b"[[1]]" + b"}" * 15, "nested")
        self.refuse(b'{"a": ' * 14 + b"[[1]]" + b"}" * 14, "image")

    def test_unknown_and_double_fields(self):
        found = self.ask(image=b64(blank()), colour="blue", return_descriptors=False)
        self.assertEqual(found["warnings"], ["colour: unknown field, ignored"])
        raw = b'{"image": 5, "max_keypoints": 1, "image": "%s", "return_descriptors": false}' % b64(blank()).encode()
        answer = self.server.post("/predict", raw)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json()["warnings"], ["image: given twice, the last one is used"])
        escaped = b'{"\\u0069mage": "%s"}' % b64(blank()).encode()
        self.assertEqual(self.server.post("/predict", escaped).json()["warnings"], [])

    # ---- parameters: 85-95
    def test_ranges(self):
        picture = b64(noise())
        every = self.points(image=picture, max_keypoints=-1, keypoint_threshold=0, nms_radius=0, border=0)
        self.assertEqual(len(every), 64 * 64)
        self.assertEqual(len(self.points(image=picture, max_keypoints=0, keypoint_threshold=0)), 0)
        for threshold in (1, 1.5, 100):
            self.assertEqual(self.points(image=picture, keypoint_threshold=threshold), [])
        for name, value in (("nms_radius", 99), ("nms_radius", 65), ("nms_radius", -1), ("border", 65), ("border", -1),
                            ("nms", "greedy"), ("channel", "green"), ("exif", "yes"), ("coordinates", "pixel"),
                            ("subpixel", "maybe"), ("subpixel", 2), ("descriptor_dtype", "float64"),
                            ("resize", "65x64"), ("resize", "max:0"), ("resize", "big"),
                            ("resize", "0x0"), ("resize", "100000x8"), ("roi", [1, 2, 3]), ("roi", [1, 2, -3, 4]),
                            ("roi", "1,2"), ("roi", ["a", 1, 2, 3]), ("roi", [1, 2, 3, 4, 5]), ("roi", {})):
            self.refuse({"image": picture, name: value}, name)
        for name, value in (("nms_radius", 64), ("nms_radius", 0), ("border", 64), ("border", 0), ("nms", "hf"),
                            ("resize", "native"), ("resize", "max:100"), ("roi", None), ("roi", [0, 0, 9, 9])):
            self.ask(image=picture, **{name: value})

    # 93
    def test_equal_scores_are_ordered_and_cut_by_place(self):
        every = self.ask(image=b64(blank(128, 128)), resize="native", keypoint_threshold=0, nms_radius=0, border=0,
                         max_keypoints=-1, return_descriptors=False)
        scored = list(zip(every["scores"], every["keypoints"]))
        self.assertEqual(scored, sorted(scored, key=lambda p: (-p[0], p[1][1], p[1][0])))
        equal = [i for i in range(len(scored) - 1) if scored[i][0] == scored[i + 1][0]]
        self.assertTrue(equal)
        for cut in (equal[0] + 1, equal[-1] + 1):
            self.assertEqual(self.points(image=b64(blank(128, 128)), resize="native", keypoint_threshold=0, nms_radius=0,
                                         border=0, max_keypoints=cut), every["keypoints"][:cut])

    def test_suppression_and_border(self):
        picture = b64(noise())
        near = self.points(image=picture, keypoint_threshold=0, nms_radius=8, max_keypoints=-1)
        self.assertTrue(near)
        for i, a in enumerate(near):
            for b in near[:i]:
                self.assertGreater(max(abs(a[0] - b[0]), abs(a[1] - b[1])), 8)
        for x, y in self.points(image=picture, keypoint_threshold=0, nms_radius=0, border=20, max_keypoints=-1):
            self.assertTrue(20 <= x < 44 and 20 <= y < 44)

    def test_region_and_mask(self):
        picture = noise(128, 128)
        for x, y in self.points(image=b64(picture), roi=[64, 0, 64, 128], keypoint_threshold=0):
            self.assertGreaterEqual(x, 64)
        mask = png(32, 32, lambda x, y: 255 if y < 16 else 0)
        masked = self.points(image=b64(picture), mask=b64(mask), keypoint_threshold=0)
        self.assertTrue(masked)
        for x, y in masked:
            self.assertLess(y, 64)
        black = png(8, 8, lambda x, y: 0)
        self.assertEqual(self.points(image=b64(picture), mask=b64(black), keypoint_threshold=0), [])
        self.refuse({"image": b64(picture), "mask": b64(b"junk")}, "mask")
        self.refuse({"image": b64(picture), "mask": 5}, "mask")
        self.assertTrue(self.points(image=b64(picture), mask=None))

    def test_resize_and_coordinates(self):
        picture = b64(noise(100, 60))
        found = self.ask(image=picture, resize="native", return_descriptors=False)
        self.assertEqual((found["image_size"], found["scale"]), ({"height": 60, "width": 100}, {"x": 1.0, "y": 1.0}))
        for x, y in self.points(image=picture, resize="native", keypoint_threshold=0, max_keypoints=-1, border=0):
            self.assertTrue(x < 100 and y < 60)
        found = self.ask(image=picture, resize="max:50", return_descriptors=False)
        self.assertEqual(found["image_size"], {"height": 30, "width": 50})
        corner = self.points(image=picture, resize="200x120")
        centre = self.points(image=picture, resize="200x120", coordinates="centre")
        colmap = self.points(image=picture, resize="200x120", coordinates="colmap")
        self.assertTrue(corner)
        for a, b, c in zip(corner, centre, colmap):
            self.assertEqual([v * 1 - 0.25 for v in a], b)
            self.assertEqual([v + 0.5 for v in b], c)

    def test_subpixel(self):
        picture, parameters = noise(100, 60), {"keypoint_threshold": 0, "max_keypoints": 200, "resize": "200x120"}
        whole = self.ask(image=b64(picture), **parameters)
        self.assertEqual(self.ask(image=b64(picture), subpixel=False, **parameters)["keypoints"], whole["keypoints"])
        fine = self.ask(image=b64(picture), subpixel=True, **parameters)
        self.assertEqual(fine["scores"], whole["scores"])
        self.assertNotEqual(fine["descriptors"]["data"], whole["descriptors"]["data"])
        moved = [abs(p - q) for a, b in zip(fine["keypoints"], whole["keypoints"]) for p, q in zip(a, b)]
        self.assertLessEqual(max(moved), 0.25)  # half a pixel of the frame, which is twice as large as the picture
        self.assertGreater(sum(m > 0 for m in moved), 0.9 * len(moved))
        centre = self.points(image=b64(picture), subpixel="yes", coordinates="centre", **parameters)
        for a, b in zip(fine["keypoints"], centre):
            for p, q in zip(a, b):
                self.assertAlmostEqual(p - 0.25, q, places=4)
        query = "&".join(f"{k}={v}" for k, v in parameters.items())
        answer = self.server.post(f"/predict?subpixel=1&{query}", picture, "image/png", {"Accept": "application/x-npz"})
        points = struct.unpack("<400f", npz(answer.body)["keypoints"][2])
        self.assertEqual(points, struct.unpack("<400f", struct.pack("<400f", *(v for p in fine["keypoints"] for v in p))))

    def test_descriptor_dtypes(self):
        for name, code, size in (("float16", "<f2", 2), ("float32", "<f4", 4), ("uint8", "|u1", 1)):
            answer = self.server.post(f"/predict?descriptor_dtype={name}&max_keypoints=3&keypoint_threshold=0", noise(),
                                      "image/png", {"Accept": "application/x-npz"})
            dtype, shape, data = npz(answer.body)["descriptors"]
            self.assertEqual((dtype, shape, len(data)), (code, (3, 256), 3 * 256 * size))

    def test_channel(self):
        red = png(64, 64, lambda x, y: bytes([255 * ((x // 8 + y // 8) % 2), 0, 0]), colour=2)
        blue = png(64, 64, lambda x, y: bytes([0, 0, 255 * ((x // 8 + y // 8) % 2)]), colour=2)
        self.assertTrue(self.points(image=b64(red)))
        self.assertEqual(self.points(image=b64(blue)), self.points(image=b64(png(64, 64, lambda x, y: 0))))
        self.assertNotEqual(self.points(image=b64(blue), channel="luma", keypoint_threshold=0),
                            self.points(image=b64(blue), keypoint_threshold=0))

    # ---- batches
    def test_batch_is_the_same_as_singles(self):
        pictures = [b64(checkers()), b64(noise(80, 64)), b64(blank(16, 16)), b64(noise(seed=7))]
        batch = self.ask(images=pictures)
        self.assertEqual(len(batch["results"]), 4)
        for picture, result in zip(pictures, batch["results"]):
            single = self.ask(image=picture)
            for key in ("num_keypoints", "keypoints", "scores", "descriptors", "original_size", "scale"):
                self.assertEqual(result[key], single[key])

    def test_batch_errors(self):
        one = b64(blank())
        self.ask(images=[one] * 16, return_descriptors=False)
        self.refuse({"images": [one] * 17}, "max_batch", status=413)
        self.refuse({"images": []}, "empty")
        self.refuse({"images": one}, "array")
        self.refuse({"images": [one, 5]}, "images[1]")
        self.refuse({"images": [one, b64(b"junk"), one]}, "images[1]")
        self.refuse({"image": one, "images": [one]}, "only one")

    def test_batch_as_npz(self):
        body = json.dumps({"images": [b64(checkers()), b64(blank())], "keypoint_threshold": 0.1}).encode()
        arrays = npz(self.server.post("/predict", body, headers={"Accept": "application/x-npz"}).body)
        self.assertEqual(set(arrays), {f"{k}_{i}" for k in ("keypoints", "scores", "descriptors") for i in (0, 1)})

    # ---- raw and multipart
    def test_raw_bodies(self):
        expected = self.points(image=b64(noise()))
        for kind in ("image/png", "image/jpeg", "image/x-unknown", "application/octet-stream"):
            answer = self.server.post("/predict?return_descriptors=0", noise(), kind)
            self.assertEqual(answer.json()["keypoints"], expected, kind)
        self.assertError(self.server.post("/predict?nms_radius=99", noise(), "image/png"), 400, "nms_radius")
        self.assertError(self.server.post("/predict?x=%zz", noise(), "image/png"), 400, "query")
        answer = self.server.post("/predict?max-keypoints=2&colour=blue&&max_keypoints=%31", noise(), "image/png").json()
        self.assertEqual((answer["num_keypoints"], answer["warnings"]), (1, ["colour: unknown parameter, ignored"]))

    def test_multipart(self):
        kind = "multipart/form-data; boundary=bOuNd"
        expected = self.points(image=b64(noise()), max_keypoints=3)
        body = multipart([("max_keypoints", b"3"), ("return_descriptors", b"false"), ("image", noise())])
        answer = self.server.post("/predict", body, kind)
        self.assertEqual((answer.status, answer.json()["keypoints"]), (200, expected))
        body = b"preamble\r\n" + multipart([("image", noise()), ("max_keypoints", b"3")]) + b"epilogue"
        self.assertEqual(self.server.post("/predict", body, 'multipart/form-data; boundary="bOuNd"').json()["keypoints"], expected)
        body = multipart([("images", noise()), ("images", blank()), ("mask", png(8, 8, lambda x, y: 255))])
        self.assertEqual(len(self.server.post("/predict", body, kind).json()["results"]), 2)

    def test_multipart_errors(self):
        kind = "multipart/form-data; boundary=bOuNd"
        whole = multipart([("max_keypoints", b"3"), ("image", noise(8, 8))])
        for size in range(0, len(whole) - 4, 7):
            answer = self.server.post("/predict", whole[:size], kind)
            self.assertEqual(answer.status, 400, size)
        for body, word in ((multipart([("max_keypoints", b"x")]), "max_keypoints"),
                           (multipart([("max_keypoints", b"3")]), "image: is missing"),
                           (multipart([("image", b"")]), "empty"), (multipart([("image", b"junk")]), "image"),
                           (multipart([("x", b"1")] * 65), "max_parts"), (b"--other--", "boundary"),
                           (multipart([("image", noise(), "Content-Transfer-Encoding: base64")]), "binary"),
                           (b"--bOuNd\r\nX: y\r\n\r\nz\r\n--bOuNd--", "Content-Disposition"),
                           (b"--bOuNdx\r\n", "boundary")):
            self.assertError(self.server.post("/predict", body, kind), 400, word)


if __name__ == "__main__":
    unittest.main()

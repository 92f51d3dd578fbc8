"""The Python package: struct layout, detection against the command line, matching, errors, lifetime."""

import os
import subprocess
import sys
import threading
import unittest

if os.environ.get("SANITIZED"):
    print("a sanitized library cannot be loaded into an interpreter that is not")
    sys.exit(77)
try:
    import numpy as np
except ImportError:
    print("numpy is missing")
    sys.exit(77)

import superpoint
from superpoint import Error, Matcher, SuperPoint, match
from superpoint._library import STRUCTS

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PICTURE = os.path.join(ROOT, "sample_data", "bridge.jpg")


class Layout(unittest.TestCase):
    def test_every_struct_and_field(self):
        text = subprocess.run([os.environ["STRUCT_LAYOUT"]], check=True, stdout=subprocess.PIPE).stdout.decode()
        there = dict(line.rsplit(" ", 1) for line in text.splitlines())
        here = {}
        for name, struct in STRUCTS.items():
            import ctypes

            here[name] = str(ctypes.sizeof(struct))
            for field, _ in struct._fields_:
                here[f"{name}.{field}"] = str(getattr(struct, field).offset)
        self.assertEqual(here, there)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.detector = SuperPoint(resize=(320, 240))

    def test_maps(self):
        """Every keypoint's score is the map's at its pixel, and nothing nearby is higher."""
        dense = self.detector.maps(PICTURE)
        self.assertEqual((dense.scores.shape, dense.descriptors.shape), ((240, 320), (30, 40, 256)))
        np.testing.assert_allclose(np.linalg.norm(dense.descriptors, axis=2), 1, atol=1e-5)
        found = self.detector.detect(PICTURE)
        self.assertGreater(len(found), 50)
        for (x, y), score in zip(found.pixels.astype(int), found.scores):
            self.assertEqual(dense.scores[y, x], score)
            self.assertEqual(dense.scores[y - 4 : y + 5, x - 4 : x + 5].max(), score)

    def test_same_as_the_command(self):
        found = self.detector.detect(PICTURE, max_keypoints=150)
        out = subprocess.run(
            [os.environ["SUPERPOINT"], "detect", PICTURE, "--resize", "320x240", "--max-keypoints", "150"],
            check=True, stdout=subprocess.PIPE).stdout.decode()
        rows = np.array([[float(v) for v in line.split()] for line in out.splitlines()], np.float32)
        np.testing.assert_array_equal(rows[:, :2], found.keypoints)
        np.testing.assert_array_equal(rows[:, 2], found.scores)
        self.assertEqual(found.image_size, (1600, 900))
        self.assertEqual(found.descriptors.shape, (150, 256))
        self.assertEqual(found.descriptors.dtype, np.float16)
        np.testing.assert_allclose(np.linalg.norm(found.descriptors.astype(np.float32), axis=1), 1, atol=1e-3)
        with open(PICTURE, "rb") as file:
            again = self.detector.detect(file.read(), max_keypoints=150)
        np.testing.assert_array_equal(again.keypoints, found.keypoints)

    def test_arrays(self):
        rng = np.random.default_rng(1)
        grey = np.repeat(np.repeat(rng.integers(0, 256, (20, 26), np.uint8), 8, 0), 8, 1)
        colour = np.stack([grey, 255 - grey, grey // 2], axis=2)
        a = self.detector.detect(grey, resize="native")
        b = self.detector.detect(colour, resize="native")
        np.testing.assert_array_equal(a.keypoints, b.keypoints)
        np.testing.assert_array_equal(a.descriptors, b.descriptors)
        strided = np.asfortranarray(grey)
        np.testing.assert_array_equal(self.detector.detect(strided, resize="native").keypoints, a.keypoints)
        self.assertEqual(a.image_size, (208, 160))
        none = self.detector.detect(np.zeros((64, 64), np.uint8), descriptors=True)
        self.assertEqual((len(none), none.descriptors.shape), (0, (0, 256)))
        without = self.detector.detect(grey, descriptors=False)
        self.assertEqual(without.descriptors.shape, (len(without), 0))
        with self.assertRaisesRegex(TypeError, "descriptors have to be"):
            superpoint.match(without.descriptors, without.descriptors)
        mask = np.zeros_like(grey)
        mask[:, :100] = 1
        self.assertLess(self.detector.detect(grey, resize="native", mask=mask).keypoints[:, 0].max(), 100)
        inside = self.detector.detect(grey, resize="native", roi=(50, 40, 60, 50)).keypoints
        self.assertTrue(((inside >= (50, 40)) & (inside < (110, 90))).all())
        self.assertEqual(self.detector.detect(grey, descriptor_dtype="uint8").descriptors.dtype, np.uint8)
        fine = self.detector.detect(grey, resize="native", subpixel=True)
        np.testing.assert_array_equal(fine.pixels, a.pixels)
        moved = np.abs(fine.keypoints - a.keypoints)
        self.assertTrue(0 < moved.max() <= 0.5)
        self.assertEqual(len(list(self.detector.detect_many([grey, colour]))), 2)

    def test_match(self):
        a = self.detector.detect(PICTURE, max_keypoints=300, descriptor_dtype="float32").descriptors
        order = np.random.default_rng(2).permutation(len(a))
        pairs, similarities = match(a, a[order])
        np.testing.assert_array_equal(order[pairs[:, 1]], pairs[:, 0])
        self.assertEqual(len(pairs), len(a))
        np.testing.assert_allclose(similarities, 1, atol=1e-5)
        b = self.detector.detect(PICTURE, max_keypoints=250, channel="luma", descriptor_dtype="float32").descriptors
        table = a @ b.T
        expected = [(i, j) for i, j in enumerate(table.argmax(1)) if table[:, j].argmax() == i]
        pairs, similarities = match(a, b)
        self.assertEqual([tuple(p) for p in pairs.tolist()], expected)
        np.testing.assert_allclose(similarities, [table[i, j] for i, j in expected], atol=1e-5)
        self.assertLess(len(match(a, b, max_ratio=0.8)[0]), len(pairs))
        self.assertEqual(len(match(a[:0], b)[0]), 0)
        matcher = Matcher(threads=1)
        for _ in range(3):
            np.testing.assert_array_equal(matcher.match(a, b)[0], pairs)

    def test_errors(self):
        with self.assertRaises(Error) as caught:
            self.detector.detect(b"this is no picture")
        self.assertEqual(caught.exception.status, 4)
        with self.assertRaises(FileNotFoundError):
            self.detector.detect("nowhere.jpg")
        with self.assertRaisesRegex(Error, "nms_radius"):
            self.detector.detect(PICTURE, nms_radius=99)
        with self.assertRaisesRegex(TypeError, "nms_radious"):
            self.detector.detect(PICTURE, nms_radious=3)
        with self.assertRaisesRegex(ValueError, "channel"):
            self.detector.detect(PICTURE, channel="blue")
        with self.assertRaisesRegex(TypeError, "float32"):
            self.detector.detect(np.zeros((8, 8), np.float32))
        with self.assertRaisesRegex(Error, "README.md: not a picture"):
            self.detector.detect(os.path.join(ROOT, "README.md"))
        for picture in (5, None, [[1, 2]]):  # 5 is also a file descriptor
            with self.assertRaisesRegex(TypeError, "a picture is a path"):
                self.detector.detect(picture)
        with self.assertRaisesRegex(ValueError, "no pixels"):
            self.detector.detect(np.zeros((0, 8), np.uint8))
        with self.assertRaises(Error):
            SuperPoint("nowhere.safetensors")
        with self.assertRaises(Error):
            SuperPoint(engine="abacus")
        with self.assertRaisesRegex(TypeError, "256"):
            match(np.zeros((3, 128), np.float32), np.zeros((3, 128), np.float32))
        with self.assertRaisesRegex(TypeError, "numpy array, not list"):
            match([], np.zeros((3, 256), np.float32))
        with self.assertRaisesRegex(Error, "max_ratio"):
            match(np.zeros((3, 256), np.float32), np.zeros((3, 256), np.float32), max_ratio=3)

    def test_numbers_are_not_cut(self):
        """What does not fit the C type is refused, not taken modulo 2^32."""
        grey = np.zeros((16, 16), np.uint8)
        for name, value in (("max_keypoints", 2**32 + 5), ("nms_radius", 2**32), ("border", -(2**31) - 1), ("max_pixels", -1),
                            ("resize", (2**32 + 8, 8)), ("resize", "max:4294967304"), ("resize", (-8, 8)), ("roi", (2**32, 0, 8, 8))):
            with self.assertRaisesRegex(ValueError, f"{name}: .* is out of range"):
                self.detector.detect(grey, **{name: value})
        for name, value in (("max_keypoints", 1.5), ("max_keypoints", "5"), ("roi", (0.5, 0, 8, 8)), ("resize", (8.0, 8))):
            with self.assertRaisesRegex(TypeError, f"{name}: .* is not a whole number"):
                self.detector.detect(grey, **{name: value})
        for name, value in (("resize", "wide"), ("resize", "max:x"), ("resize", 640), ("resize", (8, 8, 3)), ("roi", (1, 2, 3)), ("roi", None)):
            with self.assertRaisesRegex(ValueError, f"{name}: .* is not \\("):
                self.detector.detect(grey, **{name: value})
        self.assertEqual(len(self.detector.detect(PICTURE, max_keypoints=np.int32(7))), 7)
        for make in (SuperPoint, Matcher):
            for threads in (-1, 2**32):
                with self.assertRaisesRegex(ValueError, "threads: .* is out of range"):
                    make(threads=threads)

    def test_masks_of_other_types(self):
        """A number that is not 0 is not 0, whatever a conversion to 8 bits would make of it."""
        grey = np.random.default_rng(4).integers(0, 256, (64, 80), np.uint8)
        all_points = self.detector.detect(grey).keypoints
        self.assertGreater(len(all_points), 10)
        for mask in (np.full(grey.shape, 0.5), np.full(grey.shape, 256), np.ones(grey.shape, bool)):
            np.testing.assert_array_equal(self.detector.detect(grey, mask=mask).keypoints, all_points)
            self.assertEqual(len(self.detector.detect(grey, mask=mask * 0)), 0)
        with self.assertRaisesRegex(TypeError, "mask"):
            self.detector.detect(grey, mask="mask.png")

    def test_closing_waits_for_calls(self):
        """The engine is not taken from under a call in another thread."""
        for _ in range(10):
            detector = SuperPoint(threads=1, resize="native")
            picture, running, outcome = np.zeros((480, 640), np.uint8), threading.Event(), []

            def work():
                try:
                    while True:
                        running.set()
                        detector.detect(picture)
                except ValueError as error:
                    outcome.append(str(error))

            thread = threading.Thread(target=work)
            thread.start()
            running.wait()
            detector.close()
            thread.join()
            self.assertEqual(outcome, ["this SuperPoint was closed"])

    def test_closing(self):
        with SuperPoint(threads=1) as detector:
            self.assertEqual(len(detector.info.sha256), 64)
            self.assertEqual(detector.info.threads, 1)
        for use in (lambda: detector.detect(np.zeros((16, 16), np.uint8)), lambda: detector.info):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()
        detector.close()

    def test_threads_take_turns(self):
        rng = np.random.default_rng(3)
        pictures = [np.repeat(np.repeat(rng.integers(0, 256, (10, 12), np.uint8), 8, 0), 8, 1) for _ in range(4)]
        alone = [self.detector.detect(p, resize="native").keypoints for p in pictures]
        together = [None] * 4

        def work(i):
            for _ in range(5):
                together[i] = self.detector.detect(pictures[i], resize="native").keypoints

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for a, b in zip(alone, together):
            np.testing.assert_array_equal(a, b)

    def test_version(self):
        self.assertRegex(superpoint.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main(verbosity=1)

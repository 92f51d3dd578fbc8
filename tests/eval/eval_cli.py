"""`superpoint eval` on a tiny set drawn here: the identity gives 1, a wrong homography does not, errors say what.

    python3 tests/eval/eval_cli.py PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
W, H = 320, 240


def picture(dx=0):
    """A PGM of overlapping rectangles, moved right by dx."""
    state, rows = 12345, [bytearray([90] * W) for _ in range(H)]
    for _ in range(70):
        v = []
        for _ in range(5):
            state = (state * 1103515245 + 12345) % (1 << 31)
            v.append(state >> 8)
        x, y, w, h, level = v[0] % W, v[1] % H, 8 + v[2] % 60, 8 + v[3] % 50, v[4] % 256
        x0, x1 = max(0, min(W, x + dx)), max(0, min(W, x + w + dx))
        for r in rows[y:y + h]:
            r[x0:x1] = bytes([level] * (x1 - x0))
    return b"P5\n%d %d\n255\n" % (W, H) + b"".join(bytes(r) for r in rows)


def scene(folder, second, homography):
    folder.mkdir(parents=True)
    (folder / "1.pgm").write_bytes(picture())
    (folder / "2.pgm").write_bytes(second)
    (folder / "H_1_2").write_text(homography)


def run(*args):
    return subprocess.run([PROGRAM, "eval", *map(str, args)], capture_output=True, text=True, timeout=300)


class Eval(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.set = pathlib.Path(self.tmp.name) / "set"

    def tearDown(self):
        self.tmp.cleanup()

    def test_identity_shift_and_wrong_truth(self):
        scene(self.set / "i_same", picture(), "1 0 0\n0 1 0\n0 0 1\n")
        scene(self.set / "v_moved", picture(32), "1 0 32\n0 1 0\n0 0 1\n")
        scene(self.set / "wrong_moved", picture(32), "1 0 -32\n0 1 0\n0 0 1\n")
        r = run("--json", self.set)
        self.assertEqual(r.returncode, 0, r.stderr)
        doc = json.loads(r.stdout)
        self.assertEqual([p["scene"] for p in doc["pairs"]], ["i_same", "v_moved", "wrong_moved"])
        s = doc["summary"]
        self.assertEqual((s["light"]["repeatability"], s["light"]["mle"], s["light"]["h1"]), (1.0, 0.0, 1.0))
        self.assertEqual(s["light"]["intervals"]["repeatability"], [1.0, 1.0])  # one picture: nothing varies
        self.assertFalse(doc["parameters"]["subpixel"])
        fine = json.loads(run("--json", "--subpixel", self.set).stdout)
        self.assertTrue(fine["parameters"]["subpixel"])
        self.assertLess(fine["summary"]["light"]["mle"], 1e-4)
        self.assertEqual(fine["summary"]["view"]["h3"], 1.0)
        self.assertGreater(s["light"]["mscore"], 0.9)  # a flat patch may look like another one
        self.assertGreater(s["view"]["repeatability"], 0.8)  # 32 px are whole cells: what differs is near the borders
        self.assertEqual(s["view"]["h3"], 1.0)
        self.assertLess(s["wrong"]["repeatability"], 0.6)
        self.assertEqual(s["wrong"]["h5"], 0.0)

    def test_text_and_errors(self):
        scene(self.set / "i_same", picture(), "1 0 0\n0 1 0\n0 0 1\n")
        r = run(self.set)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("light", r.stdout)
        self.assertIn("95 % from", r.stdout)
        self.assertEqual(run().returncode, 2)
        r = run(self.tmp.name)
        self.assertEqual(r.returncode, 1)
        self.assertIn("holds no scene", r.stderr)
        (self.set / "i_same" / "H_1_2").write_text("1 0 nan\n")
        r = run(self.set)
        self.assertEqual(r.returncode, 1)
        self.assertIn("H_1_2: number 3 of 9", r.stderr)
        (self.set / "i_same" / "2.pgm").unlink()
        (self.set / "i_same" / "H_1_2").write_text("1 0 0 0 1 0 0 0 1")
        self.assertIn("has no picture 2", run(self.set).stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()

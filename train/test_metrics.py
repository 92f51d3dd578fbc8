"""The evaluator is tested before it judges: the identity gives 1, a known shift its value, swapped axes fail."""
import unittest

import cv2
import numpy as np
import torch

import detector
import loss
import metrics as M

SIZE = (640, 480)


def points(n=400, seed=3):
    rng = np.random.default_rng(seed)
    return rng.uniform((20, 20), (SIZE[0] - 20, SIZE[1] - 20), (n, 2))


def shift(dx, dy):
    return np.array([[1.0, 0, dx], [0, 1, dy], [0, 0, 1]])


TURN = np.array([[0.9, -0.25, 60.0], [0.22, 0.95, -35.0], [1e-4, -2e-4, 1.0]])


class Metrics(unittest.TestCase):
    def test_identity_is_one(self):
        p = points()
        r, mle, n = M.repeatability(p, p, np.eye(3), SIZE)
        self.assertEqual((r, mle, n), (1.0, 0.0, 800))
        d = M.distances(p, p)
        self.assertEqual(M.matching(d, p, p, np.eye(3), SIZE), (1.0, 1.0))

    def test_known_shift(self):
        p = points()
        r, mle, _ = M.repeatability(p, p + (8, 0), shift(8, 0), SIZE)
        self.assertEqual(r, 1.0)
        self.assertAlmostEqual(mle, 0.0, places=9)
        r, mle, _ = M.repeatability(p[:40], p[:40] + (2, 0), np.eye(3), SIZE)  # all 2 px off: within 3, error at most 2
        self.assertEqual(r, 1.0)
        self.assertLessEqual(mle, 2.0 + 1e-9)
        grid = np.stack(np.meshgrid(np.arange(20, 620, 20.0), np.arange(20, 460, 20.0)), -1).reshape(-1, 2)
        self.assertEqual(M.repeatability(grid, grid + (2, 0), np.eye(3), SIZE)[:2], (1.0, 2.0))
        self.assertEqual(M.repeatability(grid, grid + (4, 0), np.eye(3), SIZE)[0], 0.0)

    def test_half_repeats(self):
        grid = np.stack(np.meshgrid(np.arange(20, 620, 20.0), np.arange(20, 460, 20.0)), -1).reshape(-1, 2)
        moved = grid.copy()
        moved[::2] += (10, 10)
        self.assertAlmostEqual(M.repeatability(grid, moved, np.eye(3), SIZE)[0], 0.5, places=6)

    def test_points_outside_do_not_count(self):
        p = np.array([[10.0, 10.0], [630.0, 400.0]])
        r, _, n = M.repeatability(p, p[:1] + (100, 0), shift(100, 0), SIZE)
        self.assertEqual((r, n), (1.0, 2))  # the second point leaves the view

    def test_swapped_axes_fail(self):
        p = points()
        q = M.warp(TURN, p)
        p, q = p[M.inside(q, SIZE)], q[M.inside(q, SIZE)]
        self.assertGreater(M.repeatability(p, q, TURN, SIZE)[0], 0.99)
        self.assertLess(M.repeatability(p[:, ::-1], q[:, ::-1], TURN, SIZE)[0], 0.3)
        swapped = TURN[[1, 0, 2]][:, [1, 0, 2]]
        self.assertLess(M.repeatability(p, q, swapped, SIZE)[0], 0.3)
        h = M.estimate(p[:, ::-1], q[:, ::-1], SIZE)
        self.assertGreater(M.corner_error(h, TURN, SIZE), 3.0)

    def test_estimate_with_outliers(self):
        rng = np.random.default_rng(5)
        p = points()
        q = M.warp(TURN, p) + rng.normal(0, 0.5, p.shape)
        q[:220] = rng.uniform(0, 480, (220, 2))
        h = M.estimate(p, q, SIZE)
        self.assertLess(M.corner_error(h, TURN, SIZE), 0.6)
        self.assertIsNone(M.estimate(p[:3], q[:3], SIZE))
        self.assertEqual(M.corner_error(None, TURN, SIZE), float("inf"))

    def test_wrong_descriptors_score_zero(self):
        p = points()
        d = M.distances(p, np.roll(p, 7, axis=0))
        score, ap = M.matching(d, p, p, np.eye(3), SIZE)
        self.assertLess(score, 0.02)
        self.assertLess(ap, 0.02)

    def test_average_precision(self):
        right = np.array([True, False, True])
        self.assertAlmostEqual(M.average_precision(np.array([0.1, 0.2, 0.3]), right, 2), (1 + 2 / 3) / 2)
        self.assertAlmostEqual(M.average_precision(np.array([0.3, 0.2, 0.1]), right, 4), (1 + 2 / 3) / 4)

    def test_splitmix(self):
        g = M.SplitMix(1234567)
        self.assertEqual([g.next() for _ in range(3)], [6457827717110365317, 3203168211198807973, 9817491932198370423])

    def test_refine_finds_a_gaussian_between_pixels(self):
        y, x = np.mgrid[0:24, 0:32]
        top = np.array([[11.3, 7.8], [20.0, 15.45]])
        score = sum(np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2).astype(np.float32) for a, b in top)
        peaks = detector.peaks(score, 4, 0.1)[0]
        np.testing.assert_allclose(sorted(detector.refine(score, peaks).tolist()), top, atol=2e-3)
        flat = np.ones((8, 8), np.float32)
        corner = np.array([[0.0, 0.0], [7.0, 3.0]])
        np.testing.assert_array_equal(detector.refine(flat, corner), corner)

    def test_jpeg_loses_what_opencv_loses(self):
        """The differentiable stand-in gives the grey levels of a real coder, but for how it rounds."""
        rng = np.random.default_rng(2)
        grey = cv2.GaussianBlur(rng.integers(0, 256, (64, 64)).astype(np.uint8), (0, 0), 1.2)
        for quality in (25, 60, 95):
            real = cv2.imdecode(cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], 0).astype(int)
            ours = loss.jpeg(torch.from_numpy(grey)[None, None] / 255, torch.tensor([float(quality)]))[0, 0].numpy() * 255
            self.assertLess(np.abs(np.rint(ours) - real).mean(), 0.4)
            self.assertGreater(np.abs(real - grey.astype(int)).mean(), 0.4)

    def test_bootstrap_holds_the_mean(self):
        v = np.random.default_rng(1).normal(0.5, 0.1, 60)
        low, high = M.bootstrap(v, np.arange(60) // 3)
        self.assertTrue(low < v.mean() < high and high - low < 0.1)


if __name__ == "__main__":
    unittest.main()

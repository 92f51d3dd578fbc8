"""Detectors under one interface: ours (a weights file) and OpenCV's.

A method is a function of a grey uint8 picture: `detect(grey, limit, radius)` returns points (n, 2) float64, the
strongest first, at most `limit`, no two within `radius` px (Chebyshev) of each other, and descriptors or None.
"""
import pathlib
import sys

import cv2
import numpy as np
import torch

from model import load_shipping, scores

BORDER = 4


def spread(points, strength, radius, limit):
    """Greedy suppression by strength, on rounded pixels: indices of the points that stay."""
    kept = []
    q = np.rint(points).astype(int) + radius
    taken = np.zeros(tuple(q.max(0)[::-1] + radius + 1) if len(q) else (1, 1), bool)
    for i in np.argsort(-strength, kind="stable"):
        if len(kept) == limit:
            break
        x, y = q[i]
        if radius == 0 or not taken[y, x]:
            kept.append(i)
            taken[y - radius:y + radius + 1, x - radius:x + radius + 1] = True
    return np.array(kept, int)


def peaks(score, radius, threshold=0.0, border=BORDER, limit=None):
    """The project's rule: pixels that equal the maximum of their window, by score, then y, then x."""
    m = cv2.dilate(score, np.ones((2 * radius + 1, 2 * radius + 1), np.uint8), borderType=cv2.BORDER_CONSTANT,
                   borderValue=-1.0) if radius else score
    y, x = np.nonzero((score == m) & (score > threshold))
    h, w = score.shape
    ok = (x >= border) & (y >= border) & (x < w - border) & (y < h - border)
    y, x = y[ok], x[ok]
    s = score[y, x]
    o = np.lexsort((x, y, -s))[:limit]
    return np.stack([x[o], y[o]], 1).astype(np.float64), s[o]


def refine(score, points):
    """Points (n, 2) at the tops of the parabolas through the logarithms of the scores around them, at most half a pixel away."""
    out = points.copy()
    at = points.astype(int)
    for axis, step in ((0, (0, 1)), (1, (1, 0))):
        ok = (at[:, axis] > 0) & (at[:, axis] + 1 < score.shape[1 - axis])
        y, x = at[ok, 1], at[ok, 0]
        middle = score[y, x].astype(np.float64)
        with np.errstate(all="ignore"):
            a, b = np.log(middle / score[y - step[0], x - step[1]]), np.log(middle / score[y + step[0], x + step[1]])
            top = np.where((a + b > 0) & np.isfinite(a + b), (a - b) / (2 * (a + b)), 0)
        out[ok, axis] += top.clip(-0.5, 0.5)
    return out


class SuperPoint:
    """Our network, as the C library runs it in float32."""

    binary = False

    def __init__(self, weights, device="cpu", threads=1, threshold=0.0, subpixel=False):
        torch.set_num_threads(threads)
        self.net, self.device = load_shipping(weights).to(device), device
        self.threshold, self.subpixel = threshold, subpixel

    @torch.no_grad()
    def maps(self, grey):
        x = torch.from_numpy(np.array(grey)).to(self.device).float()[None, None] / 255
        logits, desc = self.net(x)
        return scores(logits)[0].cpu().numpy(), torch.nn.functional.normalize(desc.float(), dim=1)[0]

    def detect(self, grey, limit, radius):
        s, desc = self.maps(grey)
        p, _ = peaks(s, radius, self.threshold, limit=limit)
        if len(p) == 0:
            return p, np.zeros((0, 256), np.float32)
        if self.subpixel:
            p = refine(s, p)
        _, h, w = desc.shape
        g = (torch.from_numpy(p).float().to(self.device) - 3.5) / torch.tensor([8 * w - 4.5, 8 * h - 4.5], device=self.device) * 2 - 1
        d = torch.nn.functional.grid_sample(desc[None], g[None, None], align_corners=True)[0, :, 0].t()
        return p, torch.nn.functional.normalize(d, dim=1).cpu().numpy()


class OpenCV:
    """SIFT, ORB, AKAZE: detector and descriptor of OpenCV, suppressed like everyone."""

    def __init__(self, name):
        self.name, self.binary = name, name in ("orb", "akaze")

    def detect(self, grey, limit, radius):
        if self.name == "sift":
            f = cv2.SIFT_create(nfeatures=8 * limit, contrastThreshold=0.01)
        elif self.name == "orb":
            f = cv2.ORB_create(nfeatures=8 * limit, fastThreshold=5)
        else:
            f = cv2.AKAZE_create(threshold=1e-4)
        kp = f.detect(grey, None)
        p = np.array([k.pt for k in kp], np.float64).reshape(-1, 2)
        keep = spread(p, np.array([k.response for k in kp]), radius, limit)
        kp, d = f.compute(grey, [kp[i] for i in keep])
        p = np.array([k.pt for k in kp], np.float64).reshape(-1, 2)
        return p, d if d is not None else np.zeros((0, 1), np.uint8)


class Corner:
    """FAST, Harris and Shi-Tomasi: detectors without descriptors."""

    binary = False

    def __init__(self, name):
        self.name = name

    def detect(self, grey, limit, radius):
        if self.name == "fast":
            kp = cv2.FastFeatureDetector_create(threshold=5, nonmaxSuppression=True).detect(grey, None)
            p = np.array([k.pt for k in kp], np.float64).reshape(-1, 2)
            return p[spread(p, np.array([k.response for k in kp]), radius, limit)], None
        g = grey.astype(np.float32)
        r = cv2.cornerHarris(g, 3, 3, 0.04) if self.name == "harris" else cv2.cornerMinEigenVal(g, 3, 3)
        return peaks(r, radius, limit=limit)[0], None


def make(name, device="cpu", threads=1, threshold=0.0, subpixel=False):
    """A method by name: sift, orb, akaze, fast, harris, shi, or a path to weights, whose scores must exceed `threshold`."""
    if name in ("sift", "orb"):
        return OpenCV(name)
    if name == "akaze":
        if not hasattr(cv2, "AKAZE_create"):
            raise RuntimeError("this OpenCV has no AKAZE; OpenCV 4 has (train/requirements.txt)")
        return OpenCV(name)
    if name in ("fast", "harris", "shi"):
        return Corner(name)
    return SuperPoint(name, device, threads, threshold, subpixel)


def distance(da, db, binary):
    """All descriptor distances (n_a, n_b): Hamming for binary ones, else Euclidean."""
    if binary:
        a, b = np.unpackbits(da, axis=1).astype(np.float32), np.unpackbits(db, axis=1).astype(np.float32)
        return a.sum(1)[:, None] + b.sum(1)[None] - 2 * a @ b.T
    a, b = da.astype(np.float32), db.astype(np.float32)
    return np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T, 0)


def score_map(weights, device="cpu"):
    """The detector as a corner measure for `corners.adapt`: a [0, 1] picture in, its score map out.

    On a CPU by this project's library where it has been built (`make`): ten times as fast there as PyTorch.
    """
    eight_bits = lambda view: np.rint(view * 255).astype(np.uint8)
    if device == "cpu":
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
        try:
            import superpoint
            engine = superpoint.SuperPoint(weights, threads=1, resize="native")
            return lambda view: engine.maps(eight_bits(view)).scores
        except ImportError as e:
            print(f"labels by PyTorch, since the library is not there: {e}", file=sys.stderr)
    method = SuperPoint(weights, device)
    return lambda view: method.maps(eight_bits(view))[0]

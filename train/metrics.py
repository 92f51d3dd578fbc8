"""What a detector and its descriptors are worth on a pair of pictures with a known homography. Numpy only.

The definitions are those of `programs/superpoint/eval*.c`, number for number: the same order of operations, the same
generator of random samples. Points are (n, 2) arrays of x, y; `h` maps picture a to picture b; sizes are (width, height).
"""
import functools

import numpy as np

EPSILON = 3.0            # px: two points within it are the same point
RANSAC_THRESHOLD = 3.0   # px
RANSAC_SAMPLES = 3000
RANSAC_SEED = 1
MASK64 = (1 << 64) - 1


def warp(h, p):
    p = np.asarray(p, np.float64).reshape(-1, 2)
    w = p[:, 0] * h[2, 0] + p[:, 1] * h[2, 1] + h[2, 2]
    x = p[:, 0] * h[0, 0] + p[:, 1] * h[0, 1] + h[0, 2]
    y = p[:, 0] * h[1, 0] + p[:, 1] * h[1, 1] + h[1, 2]
    w = np.where(np.abs(w) < 1e-12, 1e-12, w)
    return np.stack([x / w, y / w], 1)


def inside(p, size):
    return (p[:, 0] >= 0) & (p[:, 1] >= 0) & (p[:, 0] <= size[0] - 1) & (p[:, 1] <= size[1] - 1)


def distances(a, b):
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


def repeatability(a, b, h, size, epsilon=EPSILON):
    """(repeatability, mean localisation error of what repeats, points in the shared view) of two point sets."""
    wa, wb = warp(h, a), warp(np.linalg.inv(h), b)
    ka, kb = inside(wa, size), inside(wb, size)
    wa, b_in, n = wa[ka], b[kb], int(ka.sum() + kb.sum())
    if len(wa) == 0 or len(b_in) == 0:
        return 0.0, float("nan"), n
    d = distances(wa, b_in)
    near = np.concatenate([d.min(1), d.min(0)])
    hit = near <= epsilon
    return float(hit.sum()) / n, float(near[hit].mean()) if hit.any() else float("nan"), n


def average_precision(score, correct, total):
    """Area under the precision-recall curve; `score` is a distance (smaller first), `total` what could be right."""
    if total == 0 or len(score) == 0:
        return 0.0
    c = correct[np.argsort(score, kind="stable")].astype(np.float64)
    tp = np.cumsum(c)
    precision = tp / np.arange(1, len(c) + 1)
    return float((precision * c).sum() / total)


def one_way(score, points_a, points_b, h, size, epsilon):
    """Nearest neighbours from a to b: (matching score, average precision), over the points of a in the shared view."""
    wa = warp(h, points_a)
    keep = inside(wa, size)
    if not keep.any() or len(points_b) == 0:
        return 0.0, 0.0
    s = score[keep]
    best = s.argmin(1)
    d = distances(wa[keep], points_b)
    right = d[np.arange(len(best)), best] <= epsilon
    possible = int((d.min(1) <= epsilon).sum())
    return float(right.mean()), average_precision(s.min(1), right, possible)


def matching(score, a, b, h, size, epsilon=EPSILON):
    """(matching score, NN mAP), both directions averaged; `score` (n_a, n_b) holds descriptor distances."""
    if len(a) == 0 or len(b) == 0:
        return 0.0, 0.0
    f = one_way(score, a, b, h, size, epsilon)
    g = one_way(score.T, b, a, np.linalg.inv(h), size, epsilon)
    return (f[0] + g[0]) / 2, (f[1] + g[1]) / 2


def mutual(score):
    """Index pairs (m, 2) of points that are each other's nearest."""
    if score.size == 0:
        return np.zeros((0, 2), int)
    f, g = score.argmin(1), score.argmin(0)
    i = np.arange(len(f))
    keep = g[f] == i
    return np.stack([i[keep], f[keep]], 1)


class SplitMix:
    """SplitMix64: the generator that the C program uses too."""

    def __init__(self, seed):
        self.state = seed & MASK64

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK64
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
        return z ^ (z >> 31)

    def four(self, n):
        out = []
        while len(out) < 4:
            i = (self.next() >> 32) * n >> 32
            if i not in out:
                out.append(i)
        return out


def residuals(h, a, b):
    """Squared transfer errors; infinite where a point goes behind the picture."""
    w = a[:, 0] * h[..., 2, 0, None] + a[:, 1] * h[..., 2, 1, None] + h[..., 2, 2, None]
    x = a[:, 0] * h[..., 0, 0, None] + a[:, 1] * h[..., 0, 1, None] + h[..., 0, 2, None]
    y = a[:, 0] * h[..., 1, 0, None] + a[:, 1] * h[..., 1, 1, None] + h[..., 1, 2, None]
    bad = w <= 1e-9
    w = np.where(bad, 1.0, w)
    e = (x / w - b[:, 0]) ** 2 + (y / w - b[:, 1]) ** 2
    return np.where(bad, np.inf, e)


def exact(a, b):
    """Homographies with h22 = 1 through four pairs each: a, b (k, 4, 2); NaN where they are degenerate."""
    k = len(a)
    x, y, u, v = a[..., 0], a[..., 1], b[..., 0], b[..., 1]
    o, z = np.ones_like(x), np.zeros_like(x)
    m = np.concatenate([np.stack([x, y, o, z, z, z, -u * x, -u * y], -1), np.stack([z, z, z, x, y, o, -v * x, -v * y], -1)], 1)
    r = np.concatenate([u, v], 1)
    ok = np.abs(np.linalg.det(m)) > 1e-12
    m[~ok] = np.eye(8)
    h = np.linalg.solve(m, r[..., None])[..., 0]
    h[~ok] = np.nan
    return np.concatenate([h, np.ones((k, 1))], 1).reshape(k, 3, 3)


def refine(h, a, b, limit, rounds=10):
    """Gauss-Newton on the transfer error of the inliers, which are chosen anew each round."""
    for _ in range(rounds):
        keep = residuals(h, a, b) < limit
        if keep.sum() < 4:
            return h
        p, q = a[keep], b[keep]
        w = p[:, 0] * h[2, 0] + p[:, 1] * h[2, 1] + h[2, 2]
        x = (p[:, 0] * h[0, 0] + p[:, 1] * h[0, 1] + h[0, 2]) / w
        y = (p[:, 0] * h[1, 0] + p[:, 1] * h[1, 1] + h[1, 2]) / w
        o, z = np.ones_like(x), np.zeros_like(x)
        jx = np.stack([p[:, 0], p[:, 1], o, z, z, z, -x * p[:, 0], -x * p[:, 1]], 1) / w[:, None]
        jy = np.stack([z, z, z, p[:, 0], p[:, 1], o, -y * p[:, 0], -y * p[:, 1]], 1) / w[:, None]
        m = jx.T @ jx + jy.T @ jy
        r = jx.T @ (q[:, 0] - x) + jy.T @ (q[:, 1] - y)
        try:
            step = np.linalg.solve(m, r)
        except np.linalg.LinAlgError:
            return h
        h = h + np.concatenate([step, [0.0]]).reshape(3, 3)
    return h


def estimate(a, b, size, threshold=RANSAC_THRESHOLD, samples=RANSAC_SAMPLES, seed=RANSAC_SEED):
    """Robust homography from matches a -> b (n, 2), or None. MSAC over `samples` draws, then `refine`."""
    n = len(a)
    if n < 4:
        return None
    half = size[0] / 2.0  # both pictures are brought to about [-1, 1], where the equations are well conditioned
    c = np.array([size[0] / 2.0, size[1] / 2.0])
    pa, pb, limit = (a - c) / half, (b - c) / half, (threshold / half) ** 2
    rng = SplitMix(seed)
    index = np.array([rng.four(n) for _ in range(samples)])
    hs = exact(pa[index], pb[index])
    best, best_cost = None, np.inf
    for first in range(0, samples, 500):
        e = residuals(hs[first:first + 500], pa, pb)
        cost = np.where(np.isnan(e), np.inf, np.minimum(e, limit)).sum(1)
        i = int(cost.argmin())
        if cost[i] < best_cost:
            best, best_cost = hs[first + i], cost[i]
    if best is None:
        return None
    h = refine(best, pa, pb, limit)
    t = np.array([[1 / half, 0, -c[0] / half], [0, 1 / half, -c[1] / half], [0, 0, 1]])
    return np.linalg.inv(t) @ h @ t


def corner_error(h, truth, size):
    """Mean distance of the picture's corners under the estimate and the truth; infinite without an estimate."""
    if h is None or not np.isfinite(h).all():
        return float("inf")
    c = np.array([[0, 0], [size[0] - 1, 0], [size[0] - 1, size[1] - 1], [0, size[1] - 1]], np.float64)
    return float(np.sqrt(((warp(h, c) - warp(truth, c)) ** 2).sum(1)).mean())


BOOTSTRAP_ROUNDS = 2000
BOOTSTRAP_SEED = 1


@functools.lru_cache(maxsize=32)
def draws(n):
    """Which of n scenes each round of the bootstrap draws: (BOOTSTRAP_ROUNDS, n)."""
    rng = SplitMix(BOOTSTRAP_SEED)
    return np.array([(rng.next() >> 32) * n >> 32 for _ in range(BOOTSTRAP_ROUNDS * n)]).reshape(BOOTSTRAP_ROUNDS, n)


def bootstrap(values, scenes, level=0.95):
    """Confidence interval of the mean of `values`, drawing whole scenes with replacement; NaN values do not count."""
    values, scenes = np.asarray(values, float), np.asarray(scenes)
    ok = np.isfinite(values)
    values, scenes = values[ok], scenes[ok]
    if len(values) == 0:
        return float("nan"), float("nan")
    _, inverse = np.unique(scenes, return_inverse=True)
    n = inverse.max() + 1
    total, count = np.bincount(inverse, values, n), np.bincount(inverse, minlength=n)
    pick = draws(n)
    means = total[pick].sum(1) / count[pick].sum(1)
    return tuple(float(q) for q in np.quantile(means, [(1 - level) / 2, (1 + level) / 2]))

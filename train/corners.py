"""Labels by homographic adaptation: which points a corner measure finds again in random views of a picture.

`adapt` looks at a picture through random homographies and light changes. In each view it keeps the K strongest
corners, K drawn log-uniformly, and maps them back. A point's label is the share of the views covering it that kept
it: strong, stable corners get values near 1, weak or unstable ones near 0, and the order is one that a detector
can learn and that holds from view to view.
"""
import cv2
import numpy as np

import geometry

DENSITY = (1 / 1400, 1 / 110)  # range of K per pixel of a view
GATHER = 2.0                   # votes within this many pixels belong to one point
FLOOR = 1.2e-5                 # weakest response that counts: below lie sensor noise and smooth shading
SCORE_FLOOR = 0.0015           # the same for a detector's score, calibrated for a threshold of 0.005


def response(grey, sigma=1.1):
    """Harmonic mean of the structure tensor's eigenvalues (the Noble measure) of a [0, 1] picture."""
    b = cv2.GaussianBlur(grey, (0, 0), 0.8)
    dx = cv2.Sobel(b, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
    dy = cv2.Sobel(b, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
    a, c, d = (cv2.GaussianBlur(m, (0, 0), sigma * 1.4) for m in (dx * dx, dx * dy, dy * dy))
    return (a * d - c * c) / (a + d + 1e-8)


def peaks(r, radius=4, border=4, floor=FLOOR):
    """Local maxima of map `r`, strongest first: (n, 2) sub-pixel positions by parabolas, and their values."""
    m = cv2.dilate(r, np.ones((2 * radius + 1, 2 * radius + 1), np.uint8))
    keep = (r == m) & (r > floor)
    keep[:border] = keep[-border:] = False
    keep[:, :border] = keep[:, -border:] = False
    y, x = np.nonzero(keep)
    v = r[y, x]
    o = np.argsort(-v, kind="stable")
    y, x, v = y[o], x[o], v[o]
    l, g, u, d = r[y, x - 1], r[y, x + 1], r[y - 1, x], r[y + 1, x]
    dx = 0.5 * (g - l) / np.maximum(2 * v - l - g, 1e-12)
    dy = 0.5 * (d - u) / np.maximum(2 * v - u - d, 1e-12)
    return np.stack([x + np.clip(dx, -0.5, 0.5), y + np.clip(dy, -0.5, 0.5)], 1), v


def relight(view, rng):
    """A mild change of contrast, brightness and gamma, and some noise, on a [0, 1] picture."""
    view = np.clip((view - 0.5) * rng.uniform(0.6, 1.3) + 0.5 + rng.uniform(-0.15, 0.15), 0, 1) ** rng.uniform(0.7, 1.4)
    view = view + rng.standard_normal(view.shape).astype(np.float32) * np.float32(rng.uniform(0, 0.02))
    return np.clip(view, 0, 1).astype(np.float32)


def adapt(grey, rng, views=20, measure=response, floor=FLOOR):
    """Labels of a uint8 picture: (n, 3) of x, y and the share of views that kept the point, best first.

    measure: from a [0, 1] float32 picture to its corner map; a trained detector's score map does as well, with SCORE_FLOOR.
    """
    h, w = grey.shape
    base = grey.astype(np.float32) / 255
    votes, cover = [], np.zeros((h, w), np.float32)
    for k in range(views):
        m = np.eye(3) if k == 0 else geometry.random_homography(rng, w, h, np.pi, (0.6, 1.5), 0.16, 0.08)
        view = cv2.warpPerspective(base, m, (w, h), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
        view = relight(view, rng) if k else base
        inside = cv2.warpPerspective(np.full((h, w), 255, np.uint8), m, (w, h), flags=cv2.INTER_NEAREST)
        inside = cv2.erode(inside, np.ones((13, 13), np.uint8), borderValue=0)
        p, _ = peaks(measure(view), floor=floor)
        q = np.rint(p).astype(int)
        p = p[inside[q[:, 1], q[:, 0]] > 0]
        count = np.exp(rng.uniform(np.log(DENSITY[0]), np.log(DENSITY[1]))) * np.count_nonzero(inside)
        votes.append(geometry.apply(np.linalg.inv(m), p[:int(round(count))]))
        cover += cv2.warpPerspective(inside, m, (w, h), flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP) > 0
    return gather(np.concatenate(votes), cover)


def gather(votes, cover, least=0.08, limit=700, few=4):
    """Clusters votes (n, 2) into labels: centroid within GATHER, share = votes over the views in `cover`."""
    h, w = cover.shape
    q = np.rint(votes).astype(int)
    ok = (q >= 1).all(1) & (q[:, 0] < w - 1) & (q[:, 1] < h - 1)
    votes, q = votes[ok], q[ok]
    heat = np.zeros((h, w), np.float32)
    np.add.at(heat, (q[:, 1], q[:, 0]), 1.0)
    heat = cv2.GaussianBlur(heat, (0, 0), 1.0)
    p, _ = peaks(heat, radius=3, border=1, floor=1e-3)
    out = []
    used = np.zeros(len(votes), bool)
    bins = {}
    for i, (x, y) in enumerate((votes // 4).astype(int)):
        bins.setdefault((x, y), []).append(i)
    for x, y in p:
        bx, by = int(x // 4), int(y // 4)
        near = [i for a in (-1, 0, 1) for b in (-1, 0, 1) for i in bins.get((bx + a, by + b), ()) if not used[i]]
        if not near:
            continue
        near = np.array(near)
        near = near[np.hypot(*(votes[near] - (x, y)).T) <= GATHER]
        n = cover[int(round(y)), int(round(x))]
        if n < few or len(near) < max(2, least * n):
            continue
        used[near] = True
        out.append((*votes[near].mean(0), min(1.0, len(near) / n)))
    out.sort(key=lambda t: -t[2])
    return np.array(out[:limit], np.float32).reshape(-1, 3)

"""Scenes that this program draws itself: textures, dead leaves, polygons, boards, text, bricks, boxes, strokes.

`scene(rng, size)` returns a grey picture (uint8) and the true corners (n, 2) that are visible in it. Everything comes
from `rng`, so a seed gives the same scene on every run. Shapes are drawn antialiased at 1/16 of a pixel.
"""
import cv2
import numpy as np

SHIFT = 4  # fixed-point bits of OpenCV's drawing coordinates
ONE = 1 << SHIFT
LETTERS = list("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789&%#?!@")


def fractal(rng, size, slope=None):
    """Noise with a 1/f^slope spectrum, built from octaves; zero mean, unit deviation."""
    slope = rng.uniform(0.6, 2.0) if slope is None else slope
    out = np.zeros((size, size), np.float32)
    n = int(rng.integers(2, 6))
    amplitude = 1.0
    while n < size * 1.5:
        k = min(n, size)
        o = rng.standard_normal((k, k)).astype(np.float32)
        out += amplitude * cv2.resize(o, (size, size), interpolation=cv2.INTER_CUBIC)
        amplitude *= 2.0 ** (-slope)
        n *= 2
    return (out - out.mean()) / (out.std() + 1e-6)


def voronoi(rng, size):
    """Cells of random level around random seeds; zero mean, unit deviation."""
    n = int(rng.integers(8, 90))
    seeds = np.full((size, size), 255, np.uint8)
    p = rng.integers(0, size, (n, 2))
    seeds[p[:, 1], p[:, 0]] = 0
    _, label = cv2.distanceTransformWithLabels(seeds, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_CCOMP)
    level = rng.uniform(-1.7, 1.7, label.max() + 1).astype(np.float32)
    return cv2.GaussianBlur(level[label], (0, 0), 0.6)


def stripes(rng, size):
    """A wavy grating, like wood, cloth or water."""
    a = rng.uniform(0, np.pi)
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    u = x * np.cos(a) + y * np.sin(a) + fractal(rng, size, 2.0) * rng.uniform(0, 14)
    w = np.sin(u * 2 * np.pi / rng.uniform(5, 40)).astype(np.float32)
    return np.clip(w * rng.uniform(1, 4), -1.4, 1.4)


def texture(rng, size):
    """A random texture in grey levels (float32, about 0..255)."""
    kind = rng.integers(0, 8)
    base, contrast = rng.uniform(30, 225), rng.uniform(3, 45)
    if kind < 3:
        t = fractal(rng, size)
    elif kind == 3:
        t = voronoi(rng, size)
    elif kind == 4:
        t = stripes(rng, size)
    elif kind == 5:
        t = np.abs(fractal(rng, size)) - 0.8
    elif kind == 6:
        t = np.sign(fractal(rng, size, rng.uniform(1.2, 2.0)) - rng.uniform(-0.5, 0.5)).astype(np.float32)
        t = cv2.GaussianBlur(t, (0, 0), 0.7)
    else:
        t = np.zeros((size, size), np.float32)
    gradient = np.linspace(-1, 1, size, dtype=np.float32)
    t = t * contrast + base + gradient[None] * rng.uniform(-40, 40) + gradient[:, None] * rng.uniform(-40, 40)
    return t


class Canvas:
    """A grey picture, and the corners that are still visible on it."""

    def __init__(self, rng, size):
        self.rng, self.size = rng, size
        self.grey = texture(rng, size)
        self.points = np.zeros((0, 2))

    def level(self, away_from=None, least=25.0):
        """A random grey level, at least `least` from `away_from`."""
        for _ in range(20):
            v = float(self.rng.uniform(0, 255))
            if away_from is None or abs(v - away_from) >= least:
                return v
        return v

    def cover(self, mask, corners):
        """Drops the corners below `mask` (0..255) and adds those of the new shape."""
        if len(self.points):
            q = np.clip(np.rint(self.points).astype(int), 0, self.size - 1)
            self.points = self.points[mask[q[:, 1], q[:, 0]] < 128]
        corners = np.asarray(corners, np.float64).reshape(-1, 2)
        self.points = np.concatenate([self.points, corners])

    def polygon(self, p, fill, corners=True):
        """Fills polygon `p` (n, 2) with a level or a texture."""
        mask = np.zeros((self.size, self.size), np.uint8)
        cv2.fillPoly(mask, [np.rint(np.asarray(p) * ONE).astype(np.int32)], 255, cv2.LINE_AA, SHIFT)
        self.cover(mask, p if corners else np.zeros((0, 2)))
        w = mask.astype(np.float32) / 255
        self.grey = self.grey * (1 - w) + fill * w

    def line(self, a, b, level, thickness):
        mask = np.zeros((self.size, self.size), np.uint8)
        p = np.rint(np.array([a, b]) * ONE).astype(int)
        cv2.line(mask, tuple(map(int, p[0])), tuple(map(int, p[1])), 255, thickness, cv2.LINE_AA, SHIFT)
        self.cover(mask, [a, b])
        w = mask.astype(np.float32) / 255
        self.grey = self.grey * (1 - w) + level * w

    def plane(self, picture, corners, spread=0.25, shrink=0.2):
        """Lays a flat picture onto the canvas in perspective; its corners go along."""
        n, rng = self.size, self.rng
        h0, w0 = picture.shape
        src = np.float32([[0, 0], [w0 - 1, 0], [w0 - 1, h0 - 1], [0, h0 - 1]])
        dst = (np.float32([[0, 0], [1, 0], [1, 1], [0, 1]]) - 0.5) * (1 - rng.uniform(-0.3, shrink * 2))
        dst = dst + rng.uniform(-spread, spread, (4, 2)) * 0.5
        a = rng.uniform(-np.pi, np.pi) if rng.random() < 0.5 else rng.uniform(-0.3, 0.3)
        r = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        dst = (dst @ r.T + 0.5) * n
        h = cv2.getPerspectiveTransform(src, dst.astype(np.float32)).astype(np.float64)
        kw = dict(flags=cv2.INTER_LINEAR)
        w = cv2.warpPerspective(np.full(picture.shape, 255, np.uint8), h, (n, n), **kw)
        q = np.asarray(corners, np.float64).reshape(-1, 2)
        q = np.concatenate([q, src])
        q = np.concatenate([q, np.ones((len(q), 1))], 1) @ h.T
        self.cover(w, q[:, :2] / q[:, 2:])
        w = w.astype(np.float32) / 255
        self.grey = self.grey * (1 - w) + cv2.warpPerspective(picture.astype(np.float32), h, (n, n), **kw) * w


def ring(rng, size, sides, low, high):
    """A random polygon around a random centre, corners in order of angle."""
    a = np.sort(rng.uniform(0, 2 * np.pi, sides))
    r = rng.uniform(low, high) * rng.uniform(0.55, 1.0, sides)
    return rng.uniform(0, size, 2) + np.stack([r * np.cos(a), r * np.sin(a)], 1)


def fill(c):
    """What a shape is filled with: a flat level more often than a texture."""
    return texture(c.rng, c.size) if c.rng.random() < 0.35 else c.level()


def polygons(c):
    for _ in range(int(c.rng.integers(4, 18))):
        c.polygon(ring(c.rng, c.size, int(c.rng.integers(3, 7)), 12, 95), fill(c))


def leaves(c):
    """Dead leaves: shapes of power-law sizes that cover one another, as objects do in a photograph."""
    for _ in range(int(c.rng.integers(30, 110))):
        r = min(90.0, 6.0 * c.rng.random() ** -0.8)
        if c.rng.random() < 0.4:
            t = np.linspace(0, 2 * np.pi, 24, endpoint=False)
            a, k = c.rng.uniform(0, np.pi), c.rng.uniform(0.4, 1)
            p = np.stack([np.cos(t) * r, np.sin(t) * r * k], 1)
            p = p @ np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])
            c.polygon(p + c.rng.uniform(0, c.size, 2), fill(c), corners=False)
        else:
            c.polygon(ring(c.rng, c.size, int(c.rng.integers(3, 7)), r * 0.8, r * 1.2), fill(c))


def board(c):
    """A checkerboard or a patchwork of levels, in perspective."""
    nx, ny, k = int(c.rng.integers(3, 10)), int(c.rng.integers(3, 10)), int(c.rng.integers(24, 48))
    if c.rng.random() < 0.5:
        a = c.level()
        b = c.level(a, 50)
        cells = np.where((np.add.outer(np.arange(ny), np.arange(nx)) & 1) > 0, a, b)
    else:
        cells = c.rng.uniform(0, 255, (ny, nx))
    picture = np.kron(cells, np.ones((k, k))).astype(np.float32)
    x, y = np.meshgrid(np.arange(1, nx) * k - 0.5, np.arange(1, ny) * k - 0.5)
    c.plane(picture, np.stack([x.ravel(), y.ravel()], 1))


def bricks(c):
    """Rows of bricks with mortar, shifted by half a brick, levels varying."""
    bw, bh, m = int(c.rng.integers(30, 80)), int(c.rng.integers(14, 40)), int(c.rng.integers(2, 6))
    n = int(c.size * 1.4)
    mortar = c.level()
    picture = np.full((n, n), mortar, np.float32)
    base, corners = c.level(mortar, 40), []
    for row, y in enumerate(range(0, n, bh)):
        for x in range(-bw // 2 if row & 1 else 0, n, bw):
            x0, x1, y1 = max(x + m, 0), min(x + bw, n), min(y + bh, n)
            if x1 > x0 and y1 > y + m:
                picture[y + m:y1, x0:x1] = base + c.rng.normal(0, 14)
                corners += [(x0, y + m), (x1 - 1, y + m), (x1 - 1, y1 - 1), (x0, y1 - 1)]
    picture += fractal(c.rng, n) * c.rng.uniform(0, 10)
    c.plane(picture, corners, spread=0.2, shrink=0.0)


def text(c):
    """Words in OpenCV's stroke fonts, sometimes on a sign in perspective."""
    n = c.size
    paper = np.full((n, n), c.level(), np.float32) + fractal(c.rng, n) * c.rng.uniform(0, 5)
    picture = np.clip(paper, 0, 255).astype(np.uint8)
    y = 0
    while y < n:
        size = c.rng.uniform(0.4, 2.2)
        y += int(size * 34)
        word = "".join(c.rng.choice(LETTERS, int(c.rng.integers(3, 22))))
        font = int(c.rng.choice([0, 1, 2, 3, 4, 6]))
        level = c.level(float(paper.mean()), 40)
        cv2.putText(picture, word, (int(c.rng.integers(-30, n // 3)), y), font, size, level,
                    max(1, int(size * c.rng.uniform(0.8, 3))), cv2.LINE_AA)
    c.plane(picture.astype(np.float32), [], spread=0.2, shrink=0.05)


def box(c):
    """A box seen from a corner: three visible faces with Lambert shading, seven visible vertices."""
    rng = c.rng
    s = rng.uniform(25, 80, 3)
    a, b = rng.uniform(0.2, 1.3), rng.uniform(0.3, 1.0)
    ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
    r = np.array([[ca, sa, 0], [sa * sb, -ca * sb, cb], [-sa * cb, ca * cb, sb]])
    roll = rng.uniform(-0.5, 0.5)
    r = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]]) @ r
    corner = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) * s
    p = corner @ r.T
    d = rng.uniform(4, 12) * s.max()
    q = p[:, :2] * (d / (d - p[:, 2:])) * np.array([1, -1]) + rng.uniform(0.1, 0.9, 2) * c.size
    light = rng.standard_normal(3)
    light /= np.linalg.norm(light)
    albedo = rng.uniform(60, 250)
    faces = []
    for axis in range(3):
        for sign in (-1, 1):
            normal = np.zeros(3)
            normal[axis] = sign
            nr = r @ normal
            idx = [i for i in range(8) if np.sign(corner[i, axis]) == sign]
            centre = p[idx].mean(0)
            if nr @ (np.array([0, 0, d]) - centre) <= 0:
                continue
            o = [idx[0], idx[1], idx[3], idx[2]]
            faces.append((q[o], albedo * (0.35 + 0.65 * max(0.0, float(nr @ light)))))
    for f, level in faces:
        t = level + fractal(rng, c.size) * rng.uniform(0, 12) if rng.random() < 0.5 else level
        c.polygon(f, t)


def boxes(c):
    for _ in range(int(c.rng.integers(2, 7))):
        box(c)


def lines(c):
    for _ in range(int(c.rng.integers(4, 16))):
        c.line(c.rng.uniform(0, c.size, 2), c.rng.uniform(0, c.size, 2), c.level(), int(c.rng.integers(1, 6)))


def stars(c):
    for _ in range(int(c.rng.integers(2, 7))):
        centre, level, t = c.rng.uniform(0.1, 0.9, 2) * c.size, c.level(), int(c.rng.integers(1, 6))
        for _ in range(int(c.rng.integers(3, 7))):
            a, r = c.rng.uniform(0, 2 * np.pi), c.rng.uniform(15, 90)
            c.line(centre, centre + r * np.array([np.cos(a), np.sin(a)]), level, t)


def strokes(c):
    """Grass, twigs and hair: many short curved strokes."""
    t = np.linspace(0, 1, 8)[:, None]
    mean = c.rng.uniform(0, 2 * np.pi)
    img = c.grey.copy()
    for _ in range(int(c.rng.integers(60, 320))):
        p0 = c.rng.uniform(-10, c.size + 10, 2)
        a = mean + c.rng.normal(0, 0.7)
        p2 = p0 + c.rng.uniform(10, 70) * np.array([np.cos(a), np.sin(a)])
        p1 = (p0 + p2) / 2 + c.rng.normal(0, 9, 2)
        curve = (1 - t) ** 2 * p0 + 2 * t * (1 - t) * p1 + t ** 2 * p2
        cv2.polylines(img, [np.rint(curve * ONE).astype(np.int32)], False, float(c.rng.uniform(0, 255)),
                      int(c.rng.integers(1, 4)), cv2.LINE_AA, SHIFT)
    c.grey = img
    c.points = np.zeros((0, 2))


KINDS = {"polygons": polygons, "leaves": leaves, "board": board, "bricks": bricks, "text": text, "boxes": boxes,
         "lines": lines, "stars": stars, "strokes": strokes}
WEIGHTS = {"polygons": 2, "leaves": 5, "board": 1, "bricks": 1.5, "text": 1.5, "boxes": 2, "lines": 0.7, "stars": 0.7,
           "strokes": 1.5}


def scene(rng, size, kind=None):
    """One scene: (uint8 picture, true corners (n, 2) at least 2 px inside it). `kind` is a name of KINDS."""
    c = Canvas(rng, size)
    if kind is None:
        names = list(KINDS)
        w = np.array([WEIGHTS[n] for n in names])
        picked = list(rng.choice(names, 1 if rng.random() < 0.5 else 2, p=w / w.sum()))
    else:
        picked = [kind]
    for k in picked:
        KINDS[k](c)
    grey = c.grey
    if rng.random() < 0.3:  # a soft shadow
        s = cv2.resize(rng.random((4, 4)).astype(np.float32), (size, size), interpolation=cv2.INTER_CUBIC)
        grey = grey * (1 - rng.uniform(0.2, 0.7) * np.clip(s - 0.3, 0, 1))
    grey = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), rng.uniform(0.4, 1.1))
    grey = np.clip(grey + rng.standard_normal((size, size)) * rng.uniform(0, 3), 0, 255).astype(np.uint8)
    p = c.points
    p = p[(p >= 2).all(1) & (p <= size - 3).all(1)] if len(p) else p
    return grey, p

"""Pictures of a scene whose cameras are known: boxes on a floor.

A pixel (i, j) covers [i, i + 1) x [j, j + 1) of the image plane, so that its centre is at (i + 0.5, j + 0.5), and
the camera looks along +z with x to the right and y down: COLMAP's conventions.
"""

import cv2
import numpy as np

WIDTH, HEIGHT, FOCAL = 960, 720, 900.0
SAMPLES = 2  # a side, in each pixel


def texture(rng, size=384):
    """Rectangles and ellipses of all sizes and greys."""
    canvas = np.full((size, size, 3), rng.uniform(70, 180, 3), np.uint8)
    for _ in range(170):
        centre = tuple(rng.uniform(0, size, 2))
        sides = tuple(2 * np.exp(rng.uniform(np.log(4), np.log(size / 5), 2)))
        ink = tuple(np.clip(rng.uniform(0, 255) + rng.uniform(-25, 25, 3), 0, 255))
        shape = (centre, sides, rng.uniform(0, 180))
        if rng.random() < 0.75:
            cv2.fillPoly(canvas, [np.intp(cv2.boxPoints(shape))], ink, cv2.LINE_AA)
        else:
            cv2.ellipse(canvas, shape, ink, cv2.FILLED, cv2.LINE_AA)
    return canvas.astype(np.float32)


class Quad:
    """A textured parallelogram: corner + s u + t v, s and t within 0...1."""

    def __init__(self, corner, u, v, rng):
        self.corner, self.u, self.v = (np.asarray(p, float) for p in (corner, u, v))
        self.normal = np.cross(self.u, self.v)
        self.texture = texture(rng)
        self.shade = 0.75 + 0.25 * abs(self.normal @ (0.3, 0.5, 0.8)) / np.linalg.norm(self.normal)


def box(x, y, w, d, h, rng):
    """Four walls and a roof on the floor; z is up."""
    corners = [(x, y), (x + w, y), (x + w, y + d), (x, y + d)]
    quads = [Quad((*a, 0), (b[0] - a[0], b[1] - a[1], 0), (0, 0, h), rng) for a, b in zip(corners, corners[1:] + corners[:1])]
    return quads + [Quad((x, y, h), (w, 0, 0), (0, d, 0), rng)]


def make_scene(seed=1):
    rng = np.random.default_rng(seed)
    quads = [Quad((i, j, 0), (2, 0, 0), (0, 2, 0), rng) for i in (-3, -1, 1) for j in (-3, -1, 1)]
    for x, y, w, d, h in ((-1.6, -1.2, 1.2, 1.0, 1.3), (0.5, -0.9, 0.9, 1.1, 0.8), (-0.7, 0.8, 1.3, 0.8, 1.0), (1.4, 1.1, 0.7, 0.7, 1.6)):
        quads += box(x, y, w, d, h, rng)
    return quads


def cameras(seed=1, count=12, radius=5.2):
    """[(R, C)]: world to camera, and centre, on part of a ring, uneven, and rolled by up to 25 degrees.

    The rolls matter: what is off by the same vector in all pictures is then not the same in the scene.
    """
    rng = np.random.default_rng((7, seed))
    result = []
    for i in range(count):
        angle = np.deg2rad(-66 + 132 * i / (count - 1)) + rng.uniform(-0.02, 0.02)
        centre = np.array([radius * np.sin(angle), -radius * np.cos(angle), 2.6 + rng.uniform(-0.4, 0.4)])
        forward = np.array([0, 0, 0.5]) + rng.uniform(-0.1, 0.1, 3) - centre
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, (0, 0, 1))
        right /= np.linalg.norm(right)
        down, roll = np.cross(forward, right), np.deg2rad((-25, 0, 25, 10, -10)[i % 5])
        upright = np.stack([right, down, forward])
        turn = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
        result.append((turn @ upright, centre))
    return result


def project(matrix, points):
    image = points @ matrix.T
    return image[:, :2] / image[:, 2:]


def draw(quad, rotation, centre, colour, nearness):
    """Draw one quad where it is nearer than what is there; 1 / depth is linear over the image of a plane."""
    lens = np.array([[FOCAL, 0, WIDTH / 2], [0, FOCAL, HEIGHT / 2], [0, 0, 1]])
    size = quad.texture.shape[0]
    # texture position (a, b, 1), pixel centres at integers -> fine image position, centres at integers
    plane = np.stack([quad.u, quad.v, quad.corner - centre], 1) @ np.array([[1 / size, 0, 0.5 / size], [0, 1 / size, 0.5 / size], [0, 0, 1]])
    fine = np.array([[SAMPLES, 0, -0.5], [0, SAMPLES, -0.5], [0, 0, 1]])
    matrix = fine @ lens @ rotation @ plane
    corners = project(matrix, np.array([(x, y, 1) for x in (-0.5, size - 0.5) for y in (-0.5, size - 0.5)]))
    low = np.maximum(np.floor(corners.min(0)).astype(int), 0)
    high = np.minimum(np.ceil(corners.max(0)).astype(int) + 1, (colour.shape[1], colour.shape[0]))
    if (low >= high).any():
        return
    moved = np.array([[1, 0, -low[0]], [0, 1, -low[1]], [0, 0, 1]]) @ matrix
    picture = cv2.warpPerspective(quad.texture, moved, tuple(int(n) for n in high - low), flags=cv2.INTER_LINEAR,
                                  borderMode=cv2.BORDER_REPLICATE)
    y, x = np.mgrid[low[1] : high[1], low[0] : high[0]].astype(np.float32)
    a, b, c = np.linalg.inv(fine @ lens @ rotation).T @ quad.normal / (quad.normal @ (quad.corner - centre))
    inverse = (a * x + b * y + c).astype(np.float32)
    back = np.linalg.inv(matrix)
    w = back[2, 0] * x + back[2, 1] * y + back[2, 2]
    s, t = ((back[i, 0] * x + back[i, 1] * y + back[i, 2]) / w for i in (0, 1))
    there = nearness[low[1] : high[1], low[0] : high[0]]
    closer = (inverse > there) & (s >= -0.5) & (s <= size - 0.5) & (t >= -0.5) & (t <= size - 0.5)
    there[closer] = inverse[closer]
    colour[low[1] : high[1], low[0] : high[0]][closer] = picture[closer] * quad.shade


def render(quads, rotation, centre):
    """uint8 [HEIGHT, WIDTH, 3]: every pixel the mean of SAMPLES x SAMPLES rays through it."""
    colour = np.full((SAMPLES * HEIGHT, SAMPLES * WIDTH, 3), 200, np.float32)
    nearness = np.zeros(colour.shape[:2], np.float32)
    for quad in quads:
        draw(quad, rotation, centre, colour, nearness)
    picture = colour.reshape(HEIGHT, SAMPLES, WIDTH, SAMPLES, 3).mean((1, 3))
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)

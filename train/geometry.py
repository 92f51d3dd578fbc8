"""Plane geometry shared by the data tools: homographies are 3x3 arrays that map (x, y) pixels of one picture to another.

Pixel centres lie at integer coordinates, as in OpenCV and in the network's own output.
"""
import cv2
import numpy as np


def apply(h, points):
    """Maps an (n, 2) array of points by the homography `h`."""
    points = np.asarray(points, np.float64).reshape(-1, 2)
    q = points @ h[:, :2].T + h[:, 2]
    w = q[:, 2:]
    return q[:, :2] / np.where(np.abs(w) < 1e-12, 1e-12, w)


def random_homography(rng, width, height, rotation=np.pi, scale=(0.6, 1.5), perspective=0.15, shift=0.1):
    """A random homography about the centre of a width x height picture.

    rotation: largest angle (radians, uniform); scale: range (log-uniform); perspective: how far each corner
    moves on its own, as a share of half the side; shift: of the whole, as a share of the side.
    """
    side = np.array([width, height], np.float64)
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float64) * (side - 1)
    q = corners - (side - 1) / 2
    q = q + rng.uniform(-perspective, perspective, (4, 2)) * side / 2
    s = np.exp(rng.uniform(np.log(scale[0]), np.log(scale[1])))
    a = rng.uniform(-rotation, rotation)
    r = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) * s
    q = q @ r.T + (side - 1) / 2 + rng.uniform(-shift, shift, 2) * side
    return cv2.getPerspectiveTransform(corners.astype(np.float32), q.astype(np.float32)).astype(np.float64)


def valid_area(h, source_size, target_size, margin=0):
    """Boolean map over the target picture: which of its pixels come from at least `margin` inside the source."""
    (sw, sh), (tw, th) = source_size, target_size
    y, x = np.mgrid[0:th, 0:tw]
    p = apply(np.linalg.inv(h), np.stack([x.ravel(), y.ravel()], 1))
    ok = (p >= margin).all(1) & (p[:, 0] <= sw - 1 - margin) & (p[:, 1] <= sh - 1 - margin)
    return ok.reshape(th, tw)

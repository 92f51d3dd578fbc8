"""Two real pairs without a homography, from opencv-doc's data: a stereo pair with measured depth, and a street.

    python3 train/realpairs.py EXAMPLES/data --method weights.safetensors sift orb akaze

aloe (Middlebury): a point of the left picture that the right one sees as well has a known place there, the disparity
away. Repeatability: a point of the right picture lies within 3 px of that place. Matching: the nearest descriptor does.

leuven: one street from two places. No homography and no truth exist, so methods judge one another: each estimates a
fundamental matrix from its matches (USAC-MAGSAC, 1 px, on pictures of 640x480), and the others' inliers are measured
against it. It is solved when most inliers of the methods that agree with one another lie within 3 px of their lines.
"""
import argparse
import pathlib

import cv2
import numpy as np

import detector
import evaluate
import metrics

SIZE, LIMIT, RADIUS = evaluate.LARGE, 1000, 8
FLAT = 2.0  # px of disparity: a point's surroundings vary by no more, or its depth is not certain


def look(method, path):
    grey, scale = evaluate.read(path, SIZE)
    return (*method.detect(grey, LIMIT, RADIUS), scale)


def seen_by_both(disparity):
    """Where the left picture's disparity is known, certain, and not hidden in the right picture by something nearer."""
    h, w = disparity.shape
    d = disparity.astype(np.float32)
    kernel = np.ones((5, 5), np.uint8)
    certain = (disparity > 0) & (cv2.erode(disparity, kernel) > 0) & (cv2.dilate(d, kernel) - cv2.erode(d, kernel) <= FLAT)
    nearest = np.zeros((h, w), np.float32)  # of the right picture: the largest disparity that lands on each pixel
    y, x = np.nonzero(disparity)
    at = np.rint(x - d[y, x]).astype(int)
    inside = at >= 0
    np.maximum.at(nearest, (y[inside], at[inside]), d[y, x][inside])
    nearest = cv2.dilate(nearest, np.ones((1, 3), np.uint8))
    visible = np.zeros((h, w), bool)
    visible[y[inside], x[inside]] = nearest[y[inside], at[inside]] <= d[y, x][inside] + FLAT
    return certain & visible


def stereo(method, folder):
    """Points with a known place in the right picture, and the shares of them that are found and matched there."""
    disparity = cv2.imread(str(folder / "aloeGT.png"), cv2.IMREAD_GRAYSCALE)
    good = seen_by_both(disparity)
    pa, da, scale = look(method, folder / "aloeL.jpg")
    pb, db, _ = look(method, folder / "aloeR.jpg")
    sx, sy = scale[0, 0], scale[1, 1]
    x = np.clip(np.rint(pa[:, 0] / sx).astype(int), 0, good.shape[1] - 1)
    y = np.clip(np.rint(pa[:, 1] / sy).astype(int), 0, good.shape[0] - 1)
    known = good[y, x]
    place = pa[known] - np.stack([disparity[y, x][known] * sx, np.zeros(known.sum())], 1)
    found = metrics.distances(place, pb).min(1) <= metrics.EPSILON
    best = detector.distance(da, db, method.binary)[known].argmin(1)
    matched = np.linalg.norm(pb[best] - place, axis=1) <= metrics.EPSILON
    return int(known.sum()), found.mean(), matched.mean()


def street(method, folder):
    """(fundamental matrix, inlier matches as two (n, 2) arrays, number of mutual matches)."""
    pa, da, _ = look(method, folder / "leuvenA.jpg")
    pb, db, _ = look(method, folder / "leuvenB.jpg")
    m = metrics.mutual(detector.distance(da, db, method.binary))
    a, b = pa[m[:, 0]], pb[m[:, 1]]
    cv2.setRNGSeed(1)
    f, mask = cv2.findFundamentalMat(a, b, cv2.USAC_MAGSAC, 1.0, 0.9999, 20000)
    keep = mask.ravel() > 0
    return f, a[keep], b[keep], len(m)


def line_distance(f, a, b):
    """Distance of each match from its epipolar lines, the larger of the two pictures'."""
    one = lambda p: np.concatenate([p, np.ones((len(p), 1))], 1)
    lb, la = one(a) @ f.T, one(b) @ f
    e = np.abs((one(b) * lb).sum(1))
    return np.maximum(e / np.hypot(lb[:, 0], lb[:, 1]), e / np.hypot(la[:, 0], la[:, 1]))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--method", nargs="+", required=True)
    o = a.parse_args()
    methods = {pathlib.Path(n).stem: detector.make(n) for n in o.method}
    print("aloe\n\n| method | points with known depth | repeated | matched |\n|---|---|---|---|")
    for name, method in methods.items():
        n, found, matched = stereo(method, o.folder)
        print(f"| {name} | {n} | {found:.3f} | {matched:.3f} |")
    solved = {name: street(method, o.folder) for name, method in methods.items()}
    print("\nleuven\n\n| method | mutual matches | inliers | others' inliers within 3 px of its lines |\n|---|---|---|---|")
    for name, (f, p, _, n) in solved.items():
        others = ", ".join(f"{other} {(line_distance(f, q, r) <= 3).mean():.2f}" for other, (_, q, r, _) in solved.items() if other != name)
        print(f"| {name} | {n} | {len(p)} | {others} |")


if __name__ == "__main__":
    cv2.setNumThreads(1)
    main()

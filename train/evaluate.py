"""Measures detectors on sets of pairs (`pairs.py` makes them, HPatches is one) and prints tables.

    python3 train/evaluate.py SET [SET …] --method weights.safetensors sift orb akaze fast harris shi [--json out.json]

Repeatability and localisation: pictures at 320x240, the 300 strongest points, suppression radius 4, 3 px.
Homography, matching score and mAP: 640x480, 1000 points, radius 8, mutual nearest neighbours, `metrics.estimate`
(MSAC, 3000 samples, 3 px). Every method, OpenCV's too, is suppressed and counted alike. Intervals: 95 %, by
bootstrap over pictures.
"""
import argparse
import json
import pathlib
import sys
import time

import cv2
import numpy as np
from PIL import Image

import detector
import metrics
import pairs

SMALL, LARGE = (320, 240), (640, 480)
COLUMNS = ("points", "repeatability", "mle", "h1", "h3", "h5", "mscore", "map", "inliers")


def read(path, size):
    """A picture as the C library frames it: Pillow's L, Pillow's bilinear resize. And the scale original -> frame."""
    im = Image.open(path)
    grey = im.convert("RGB").convert("L")
    w, h = grey.size
    return np.asarray(grey if (w, h) == size else grey.resize(size, Image.BILINEAR)), np.diag([size[0] / w, size[1] / h, 1.0])


def pair(method, path_a, path_b, h, cache):
    """All figures of one pair."""
    out = {}
    for size, limit, radius in ((SMALL, 300, 4), (LARGE, 1000, 8)):
        found = []
        for path in (path_a, path_b):
            key = (path, size)
            if key not in cache:
                grey, scale = read(path, size)
                cache[key] = (*method.detect(grey, limit, radius), scale)
            found.append(cache[key])
        (pa, da, sa), (pb, db, sb) = found
        truth = sb @ h @ np.linalg.inv(sa)
        if size == SMALL:
            out["points"] = (len(pa) + len(pb)) / 2
            out["repeatability"], out["mle"], _ = metrics.repeatability(pa, pb, truth, size)
        elif da is not None:
            if len(pa) and len(pb):
                d = detector.distance(da, db, method.binary)
                out["mscore"], out["map"] = metrics.matching(d, pa, pb, truth, size)
                m = metrics.mutual(d)
                a, b = pa[m[:, 0]], pb[m[:, 1]]
                e = metrics.corner_error(metrics.estimate(a, b, size), truth, size)
                out["inliers"] = float((np.linalg.norm(metrics.warp(truth, a) - b, axis=1) <= 3).mean())
            else:
                out["mscore"] = out["map"] = out["inliers"] = 0.0
                e = float("inf")
            out["corner_error"] = e
            out.update({f"h{k}": float(e <= k) for k in (1, 3, 5)})
    return out


def run(sets, name, device="cpu", threads=1, threshold=0.0, subpixel=False):
    """Rows of figures, one a pair."""
    method, rows = detector.make(name, device, threads, threshold, subpixel), []
    for s in sets:
        cache = {}
        for scene, k, a, b, h in pairs.load(s):
            cache = {key: v for key, v in cache.items() if key[0].parent == a.parent}
            rows.append({"set": pathlib.Path(s).name, "scene": scene, "k": k, **pair(method, a, b, h, cache)})
    return rows


def group(scene):
    return {"i": "light", "v": "view"}.get(scene.split("_")[0], scene.split("_")[0])


def summary(rows):
    """Per group ("light", "view", …): column -> (mean, low, high), and the number of pairs."""
    out = {}
    for g in sorted({group(r["scene"]) for r in rows}):
        part = [r for r in rows if group(r["scene"]) == g]
        scenes = [r["scene"].split("_", 1)[-1].split(".")[0] for r in part]
        out[g] = {"pairs": len(part)}
        for c in COLUMNS:
            v = [r.get(c, float("nan")) for r in part]
            if np.isfinite(v).any():
                out[g][c] = (float(np.nanmean(v)), *metrics.bootstrap(v, scenes))
    return out


def table(results):
    """Markdown, one table a group."""
    lines = []
    for g in sorted({g for r in results.values() for g in r["summary"]}):
        n = next(r["summary"][g]["pairs"] for r in results.values() if g in r["summary"])
        lines += [f"\n{g} ({n} pairs)\n", "| method | points | rep. | MLE px | H ε=1 | H ε=3 | H ε=5 | m. score | mAP | inliers |", "|" + "---|" * (1 + len(COLUMNS))]
        for name, r in results.items():
            cells = []
            for c in COLUMNS:
                v = r["summary"].get(g, {}).get(c)
                cells.append("" if v is None else f"{v[0]:.0f}" if c == "points" else f"{v[0]:.3f} [{v[1]:.3f}, {v[2]:.3f}]")
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("sets", nargs="+", type=pathlib.Path)
    a.add_argument("--method", nargs="+", required=True)
    a.add_argument("--json", type=pathlib.Path)
    a.add_argument("--device", default="cpu")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--threshold", type=float, default=0.0, help="only points of ours whose score is above it (0: as many as are asked for)")
    a.add_argument("--subpixel", action="store_true", help="points of ours between the pixels, where the scores peak")
    o = a.parse_args()
    cv2.setNumThreads(1)
    results = {}
    for name in o.method:
        t = time.time()
        rows = run(o.sets, name, o.device, o.threads, o.threshold, o.subpixel)
        results[pathlib.Path(name).stem] = {"summary": summary(rows), "pairs": rows}
        print(f"{name}: {len(rows)} pairs, {time.time() - t:.0f} s", file=sys.stderr)
    print(table(results))
    if o.json:
        o.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Detection of true corners on drawn scenes: mean average precision and localisation error, with and without noise.

    python3 train/synthetic.py --method weights.safetensors fast harris shi [--scenes 60]

A scene counts its own ranking: the 300 strongest points in order; one is right when a true corner lies within 3 px.
Average precision is the area under precision and the recall of true corners. Scenes use seeds that no shard uses.
"""
import argparse
import pathlib

import numpy as np

import detector
import metrics
import scenes

KINDS = ("polygons", "board", "boxes", "lines", "stars", "bricks")
SIZE, FIRST_SEED = 256, 5_000_000


def average_precision(points, truth, epsilon=3.0):
    """AP of ranked points against true corners, and the mean distance of the right ones."""
    if len(points) == 0 or len(truth) == 0:
        return 0.0, float("nan")
    d = metrics.distances(points, truth)
    right = d.min(1) <= epsilon
    found, recall, ap = np.zeros(len(truth), bool), 0.0, 0.0
    for i, ok in enumerate(right):
        found |= d[i] <= epsilon
        now = found.mean()
        ap += (now - recall) * right[:i + 1].mean()
        recall = now
    return float(ap), float(d.min(1)[right].mean()) if right.any() else float("nan")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--method", nargs="+", required=True)
    a.add_argument("--scenes", type=int, default=60)
    o = a.parse_args()
    print("| method | mAP | MLE px | mAP, noise | MLE px, noise |\n|---|---|---|---|---|")
    for name in o.method:
        method, cells = detector.make(name), []
        for sigma in (0, 20):
            values = []
            for i in range(o.scenes):
                rng = np.random.default_rng(FIRST_SEED + i)
                grey, truth = scenes.scene(rng, SIZE, KINDS[i % len(KINDS)])
                grey = np.clip(grey + rng.standard_normal(grey.shape) * sigma, 0, 255).astype(np.uint8)
                inner = truth[(truth >= 6).all(1) & (truth <= SIZE - 7).all(1)]
                if len(inner):
                    values.append(average_precision(method.detect(grey, 300, 4)[0], inner))
            cells += [f"{np.mean([v[0] for v in values]):.3f}", f"{np.nanmean([v[1] for v in values]):.2f}"]
        print(f"| {pathlib.Path(name).stem} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

"""How many points a threshold leaves on ordinary pictures at 640x480 (radius 4, border 4), and how evenly they lie.

    python3 train/threshold.py weights.safetensors SET [SET …]

Over the first picture of every scene of the sets. "Cover" is the share of an 8x6 grid's tiles that hold a point, when
the strongest 1024 are kept, as by default.
"""
import argparse
import pathlib

import numpy as np

import detector
import evaluate
import pairs

THRESHOLDS = (0.0, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05)
LIMIT = 1024


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("weights")
    a.add_argument("sets", nargs="+", type=pathlib.Path)
    o = a.parse_args()
    method = detector.SuperPoint(o.weights)
    files = sorted({p for s in o.sets for _, _, p, _, _ in pairs.load(s)})
    maps = [method.maps(evaluate.read(f, (640, 480))[0])[0] for f in files]
    print(f"{len(files)} pictures\n\n| threshold | fewest | 10 % | median | 90 % | most | within 200 to 1024 | cover |\n|---|---|---|---|---|---|---|---|")
    for t in THRESHOLDS:
        count, cover = [], []
        for m in maps:
            p, _ = detector.peaks(m, 4, t)
            count.append(len(p))
            kept = p[:LIMIT]
            cover.append(len(np.unique((kept[:, 1] // 80).astype(int) * 8 + (kept[:, 0] // 80).astype(int))) / 48)
        c = np.array(count)
        inside = ((c >= 200) & (c <= 1024)).mean()
        print(f"| {t:g} | {c.min()} | {np.quantile(c, .1):.0f} | {np.median(c):.0f} | {np.quantile(c, .9):.0f} | {c.max()} | {inside:.0%} | {np.mean(cover):.2f} |")


if __name__ == "__main__":
    main()

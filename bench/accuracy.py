#!/usr/bin/env python3
"""How near bf16 and int8 are to float32 on twenty pictures: the gates of `superpoint validate`, picture by picture.

usage: accuracy.py [--precision bf16,int8] [--level L] [--weights FILE] [--output FILE]

The sample picture and nineteen of scikit-image's, resized to 640x480. Against the float32 of the same engine, which is
within 1e-5 of PyTorch's (tests/parity/network_parity.py). F1 is that of the 500 strongest points after suppression, at 2 pixels,
without a threshold, so that on a picture that is mostly flat it judges points which nobody is given;
`f1_given` is that of the points above the default threshold, 0.005, off the border.
"""
import argparse
import json
import os
import statistics
import sys

import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TREE, "tests", "parity"))

NAMES = ("astronaut.png brick.png camera.png cell.png chelsea.png clock_motion.png coffee.png coins.png color.png grass.png "
         "gravel.png horse.png hubble_deep_field.jpg ihc.png moon.png page.png retina.jpg rocket.jpg text.png").split()
GATES = {"score_pcc": 0.9971, "descriptor_pcc": 0.9991, "f1": 0.9880}
RADIUS, STRONGEST, REACH, THRESHOLD, BORDER = 4, 500, 2, 0.005, 4


def pictures():
    import skimage
    folder = os.path.join(os.path.dirname(skimage.__file__), "data")
    paths = [os.path.join(TREE, "sample_data/bridge.jpg")] + [os.path.join(folder, name) for name in NAMES]
    for path in paths:
        picture = Image.open(path).convert("RGB").resize((640, 480), Image.Resampling.BILINEAR)
        yield os.path.splitext(os.path.basename(path))[0], np.ascontiguousarray(np.asarray(picture)[:, :, 0])


def window_maximum(scores, radius):
    out = scores
    for axis in (0, 1):
        pad = [(radius, radius) if a == axis else (0, 0) for a in (0, 1)]
        padded = np.pad(out, pad, constant_values=-np.inf)
        out = np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1, axis).max(-1)
    return out


def points(scores, given):
    """[n,2] of the strongest 500 after suppression, or of those that a request is given by default (at most 1024)."""
    kept = np.where(scores == window_maximum(scores, RADIUS), scores, 0)
    if given:
        kept[kept <= THRESHOLD] = 0
        kept[:BORDER] = kept[-BORDER:] = 0
        kept[:, :BORDER] = kept[:, -BORDER:] = 0
    at = np.argsort(-kept, axis=None, kind="stable")[:1024 if given else STRONGEST]
    at = at[kept.ravel()[at] > 0]
    return np.stack(np.unravel_index(at, scores.shape), 1)


def f1(found, expected):
    if len(found) == 0 or len(expected) == 0:
        return float(len(found) == len(expected))
    near = np.abs(found[:, None] - expected[None]).max(-1) <= REACH
    precision, recall = near.any(1).mean(), near.any(0).mean()
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def pcc(a, b):
    return float(np.corrcoef(a.astype(np.float64).ravel(), b.astype(np.float64).ravel())[0, 1])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--precision", default="bf16,int8")
    p.add_argument("--level")
    p.add_argument("--weights", default=os.path.join(TREE, "weights/superpoint.safetensors"))
    p.add_argument("--output")
    args = p.parse_args()
    from libsuperpoint import Library
    library = Library()
    reference = library.engine(args.weights, engine="cpu", precision="fp32")
    expected = [(name, plane, *reference.run(plane)) for name, plane in pictures()]
    doc = {"command": "bench/accuracy.py " + " ".join(sys.argv[1:]), "gates": GATES, "results": []}
    for precision in args.precision.split(","):
        engine = library.engine(args.weights, engine="cpu", precision=precision, level=args.level)
        rows = []
        for name, plane, scores, descriptors in expected:
            s, d = engine.run(plane)
            rows.append({"picture": name, "score_pcc": pcc(s, scores), "descriptor_pcc": pcc(d, descriptors),
                         "f1": f1(points(s, False), points(scores, False)),
                         "f1_given": f1(points(s, True), points(scores, True)),
                         "given": len(points(scores, True))})
            print(f"{precision} {name:18} scores {rows[-1]['score_pcc']:.6f}, descriptors {rows[-1]['descriptor_pcc']:.6f}, "
                  f"F1 {rows[-1]['f1']:.4f}; of the {rows[-1]['given']} given {rows[-1]['f1_given']:.4f}")
        summary = {"precision": precision}
        for key in (*GATES, "f1_given"):
            values = [r[key] for r in rows]
            summary[key] = {"mean": statistics.mean(values), "least": min(values)}
        summary["pictures_that_hold"] = {k: sum(r[k] >= gate for r in rows) for k, gate in GATES.items()}
        print(f"{precision}: " + ", ".join(f"{k} {summary[k]['mean']:.5f} ({summary[k]['least']:.5f})" for k in (*GATES, "f1_given"))
              + f"; hold: {summary['pictures_that_hold']}")
        doc["results"].append({**summary, "pictures": rows})
    if args.output:
        with open(args.output, "w") as f:
            json.dump(doc, f, indent=1)


if __name__ == "__main__":
    main()

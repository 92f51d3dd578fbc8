"""Writes the averaged weights of a checkpoint as safetensors (float16), with what made them in the metadata.

    python3 train/export.py run/checkpoint.pt [EARLIER.pt …] superpoint.safetensors --calibrate SET [--report eval.json]

Of several checkpoints it writes the mean: it finds more points again than any one of them.

--calibrate shifts the dustbin's bias so that the default threshold of 0.005 leaves, in the median, --points points
on the first pictures of a set of pairs at 640x480 (radius 4, border 4). All scores of a cell shrink or grow together, so the
order within a cell stays, and the order between cells very nearly.
"""
import argparse
import json
import pathlib

import cv2
import numpy as np
import torch

import data
import detector
import evaluate
import pairs
import report
from model import load_shipping, mean_weights, save_shipping, shipping_weights

THRESHOLD = 0.005
MOST = 30
RECIPE = ("steps", "decay", "pairs", "workers", "size", "lr", "warmup", "ramp", "weight", "choice", "order", "repeated", "matched", "light",
          "still", "rounded", "frozen", "detector_only", "average", "seed", "bf16")  # options that go into the metadata
BIAS = "keypoint_decoder.conv_score_b.bias"


@torch.no_grad()
def logits(net, grey):
    return net(torch.from_numpy(np.array(grey)).float()[None, None] / 255)[0].float()


def count(lg, shift):
    """Points above the threshold when the dustbin's logit is moved by `shift`."""
    lg = lg.clone()
    lg[:, 64] += shift
    score = detector.scores(lg)[0].numpy()
    return len(detector.peaks(score, 4, THRESHOLD)[0])


def calibrate(path, folder, points):
    """The shift, by bisection, and the counts with it, over at most MOST pictures of the set."""
    net = load_shipping(path)
    files = sorted({p for _, _, p, _, _ in pairs.load(folder)})
    maps = [logits(net, evaluate.read(p, (640, 480))[0]) for p in files[::max(1, len(files) // MOST)]]
    low, high = -8.0, 8.0
    for _ in range(18):
        mid = (low + high) / 2
        if np.median([count(m, mid) for m in maps]) > points:
            low = mid
        else:
            high = mid
    shift = round(high, 2)  # far below what the median can tell, and no keypoint is left on the threshold by construction
    return shift, [count(m, shift) for m in maps]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("checkpoints", type=pathlib.Path, nargs="+", metavar="checkpoint", help="the metadata tell the options of the first")
    a.add_argument("out", type=pathlib.Path)
    a.add_argument("--calibrate", type=pathlib.Path, help="set of pairs, as pairs.py makes")
    a.add_argument("--points", type=int, default=700)
    a.add_argument("--report", type=pathlib.Path, help="JSON of `superpoint eval`, whose figures go into the metadata")
    o = a.parse_args()
    loaded = [torch.load(c, map_location="cpu", weights_only=True) for c in o.checkpoints]
    tensors = shipping_weights(mean_weights(loaded))
    options = {k: v for k, v in loaded[0]["options"].items() if k in RECIPE}
    meta = {"format": "pt", "license": "Apache-2.0", "recipe": "train/train.py " + json.dumps(options, sort_keys=True),
            "steps": " ".join(str(c["step"]) for c in loaded),
            "data": "train/manifest.json sha256:" + data.digest(), "labels": "homographic adaptation (train/corners.py); none from other weights"}
    if o.report:
        summary = evaluate.summary(report.rows(f"ours={o.report}")[1])
        meta["metrics"] = json.dumps({g: {k: round(v[0], 4) for k, v in s.items() if k != "pairs"} for g, s in summary.items()})
    save_shipping(tensors, o.out, meta, np.float32)
    if o.calibrate:
        shift, counts = calibrate(o.out, o.calibrate, o.points)
        tensors[BIAS][64] += shift
        meta["calibration"] = f"dustbin bias {shift:+.2f}: median {int(np.median(counts))} points at {THRESHOLD}, {min(counts)} to {max(counts)}"
        print(meta["calibration"])
    save_shipping(tensors, o.out, meta)


if __name__ == "__main__":
    cv2.setNumThreads(1)
    main()

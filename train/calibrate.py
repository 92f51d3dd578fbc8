"""Measure the ranges that int8 arithmetic is scaled by, and write them beside the weights.

usage: calibrate.py [--weights FILE.safetensors] [--share 0.9999] PICTURE...

For each output channel of the first five layers: the value that all but one in ten thousand stay below, over
the pictures and some drawn scenes, whose contrasts are harder than photographs', at 640x480 and 320x240, plain, mirrored
and inverted. The file NAME.ranges names the digest of the weights; other
weights ignore it. lib/model/ranges.h has the format.
"""
import argparse
import hashlib
import os

import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors.torch import load_file

import scenes

LAYERS = [f"encoder.conv_blocks.{b}.conv_{c}" for b in range(3) for c in "ab"][:5]
POOLED = (1, 3)
SCENES = ("board", "bricks", "text", "boxes", "lines", "strokes")


def planes(paths):
    drawn = [Image.fromarray(scenes.scene(np.random.default_rng([9, i]), 640, kind)[0]) for i, kind in enumerate(SCENES)]
    for picture in [Image.open(path) for path in paths] + drawn:
        picture = picture.convert("RGB")
        for size in ((640, 480), (320, 240)):
            small = picture.resize(size, Image.BILINEAR)
            for p in (small, ImageOps.mirror(small), ImageOps.invert(small)):
                yield torch.from_numpy(np.asarray(p)[:, :, 0].copy()).float()[None, None] / 255


def outputs(tensors, x):
    for i, name in enumerate(LAYERS):
        x = torch.relu(torch.nn.functional.conv2d(x, tensors[name + ".weight"], tensors[name + ".bias"], padding=1))
        yield x[0].flatten(1)  # before pooling: a maximum of more numbers has the same range
        if i in POOLED:
            x = torch.nn.functional.max_pool2d(x, 2)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--weights", default=os.path.join(os.path.dirname(__file__), "../weights/superpoint.safetensors"))
    p.add_argument("--share", type=float, default=0.9999)
    p.add_argument("pictures", nargs="+")
    args = p.parse_args()
    torch.set_grad_enabled(False)
    tensors = {k: v.float() for k, v in load_file(args.weights).items()}
    ranges = [torch.zeros(tensors[n + ".bias"].numel()) for n in LAYERS]
    for x in planes(args.pictures):
        for i, values in enumerate(outputs(tensors, x)):
            rank = max(1, round(values.shape[1] * (1 - args.share)))
            ranges[i] = torch.maximum(ranges[i], values.topk(rank, dim=1).values[:, -1])
    with open(args.weights, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    path = os.path.splitext(args.weights)[0] + ".ranges"
    with open(path, "w") as f:
        f.write(f"superpoint ranges 1\nsha256 {digest}\n")
        for i, r in enumerate(ranges):
            r = r.clamp_min(float(r.max()) * 1e-6)  # a channel that is never on
            f.write(f"layer {i} {len(r)}\n" + " ".join(f"{float(v):.6g}" for v in r) + "\n")
    print(path)


if __name__ == "__main__":
    main()

"""superpoint.hf against transformers' own model with the same weights, through its own processor."""

import os
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import SuperPointConfig, SuperPointForKeypointDetection, SuperPointImageProcessor

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from superpoint.hf import SuperPointForKeypointDetection as Ours  # noqa: E402

WEIGHTS = os.environ.get("SUPERPOINT_WEIGHTS", str(ROOT / "weights" / "superpoint.safetensors"))


def main():
    torch.manual_seed(0)
    theirs = SuperPointForKeypointDetection(SuperPointConfig()).eval()
    theirs.load_state_dict(load_file(WEIGHTS))
    ours = Ours.from_pretrained(WEIGHTS)
    processor = SuperPointImageProcessor()
    picture = Image.open(ROOT / "sample_data" / "bridge.jpg").convert("RGB")
    pictures = [picture, picture.crop((300, 200, 1100, 800)).transpose(Image.Transpose.FLIP_LEFT_RIGHT)]
    sizes = [(p.height, p.width) for p in pictures]
    inputs = processor(pictures, return_tensors="pt")
    failures = 0
    for limit in (-1, 300):
        theirs.config.max_keypoints = theirs.keypoint_decoder.max_keypoints = limit
        ours.max_keypoints = limit
        with torch.no_grad():
            a = theirs(**inputs)
        b = ours(**inputs)
        for name in ("keypoints", "scores", "descriptors", "mask"):
            x, y = getattr(a, name), getattr(b, name)
            assert x.dtype == y.dtype or name == "mask", (name, x.dtype, y.dtype)
        pa = processor.post_process_keypoint_detection(a, sizes)
        pb = processor.post_process_keypoint_detection(b, sizes)
        for i, (x, y) in enumerate(zip(pa, pb)):
            there = {tuple(p): k for k, p in enumerate(x["keypoints"].tolist())}
            here = {tuple(p): k for k, p in enumerate(y["keypoints"].tolist())}
            common = sorted(there.keys() & here.keys())
            ka, kb = [there[p] for p in common], [here[p] for p in common]
            share = len(common) / max(len(there), len(here))
            score = (x["scores"][ka] - y["scores"][kb]).abs().max().item()
            descriptor = (x["descriptors"][ka] * y["descriptors"][kb]).sum(1).min().item()
            order = float(np.mean(np.diff(kb) > 0)) if limit < 0 and ka == sorted(ka) else 1.0
            print(f"max_keypoints {limit}, picture {i}: {len(there)} and {len(here)} keypoints, {share:.4f} the same; "
                  f"largest difference of a score {score:.1e}; smallest cosine {descriptor:.6f}")
            failures += share < 0.99 or score > 1e-4 or descriptor < 0.9999 or order < 1
    for shape in ((0, 3, 480, 640), (3, 480, 640)):  # the error names the shape
        try:
            ours(torch.zeros(shape))
            failures += 1
        except ValueError as error:
            failures += str(shape) not in str(error)
            print(error)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

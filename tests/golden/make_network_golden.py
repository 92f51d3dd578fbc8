"""Make tests/golden/network: what transformers makes of a few frames, for network_golden.c.

usage (with the packages of tests/parity/requirements.txt): make_network_golden.py

NAME.u8           the frame, rows of bytes; its size is in frames.txt
NAME.scores.f32   the score map before suppression, from the network in double precision
NAME.descriptors.f32
NAME.hf.txt       "x y" of transformers' own keypoints (threshold 0.005, radius 4, border 0), in raster order
NAME.default.txt  "x y" by the default rule, stated in numpy on the same map, in raster order

The sets of points must not hang on the last bits: the script checks that noise of 1e-6 leaves them as they are.
"""
import os
import sys

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import SuperPointConfig, SuperPointForKeypointDetection

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../parity"))
from network_parity import BORDER, RADIUS, THRESHOLD, contract_points, dense  # noqa: E402
from transformers.models.superpoint.modeling_superpoint import simple_nms  # noqa: E402


def frames():
    sample = Image.open(os.path.join(HERE, "../../sample_data/bridge.jpg")).convert("RGB")
    red = np.asarray(sample.resize((640, 480), Image.BILINEAR))[:, :, 0]
    yield "tower", red[96:168, 184:288], True
    yield "lamps", red[256:304, 400:464], True
    yield "noise", np.random.default_rng(7).integers(0, 256, (24, 40), dtype=np.uint8), True
    yield "sample", red[120:440], False


def raster(points):
    return points[np.lexsort((points[:, 0], points[:, 1]))]


def points_of(scores):
    y, x = np.nonzero(simple_nms(torch.from_numpy(scores)[None], RADIUS)[0].numpy() > np.float32(THRESHOLD))
    return np.stack([x, y], 1), raster(contract_points(scores, RADIUS, THRESHOLD, BORDER, 1024))


def main():
    out = os.path.join(HERE, "network")
    os.makedirs(out, exist_ok=True)
    config = SuperPointConfig(keypoint_threshold=THRESHOLD, nms_radius=RADIUS, border_removal_distance=0)
    model = SuperPointForKeypointDetection(config).eval()
    model.load_state_dict(load_file(os.path.join(HERE, "../../weights/superpoint.safetensors")))
    model.double()
    torch.Tensor.float = torch.Tensor.double  # dense() asks for float
    index = []
    for name, plane, with_maps in frames():
        plane = np.ascontiguousarray(plane)
        scores, descriptors = dense(model, plane)
        scores, descriptors = scores.astype(np.float32), descriptors.astype(np.float32)
        path = os.path.join(out, name)
        plane.tofile(path + ".u8")
        if with_maps:
            scores.tofile(path + ".scores.f32")
            descriptors.tofile(path + ".descriptors.f32")
        hf, default = points_of(scores)
        np.savetxt(path + ".hf.txt", hf, "%d")
        np.savetxt(path + ".default.txt", default, "%d")
        noise = np.random.default_rng(3)
        for _ in range(20):
            moved = points_of(np.float32(scores + noise.uniform(-1e-6, 1e-6, scores.shape)))
            assert np.array_equal(hf, moved[0]) and np.array_equal(default, moved[1]), f"{name} hangs on the last bits"
        index.append(f"{name} {plane.shape[1]} {plane.shape[0]} {int(with_maps)}\n")
    with open(os.path.join(out, "frames.txt"), "w") as f:
        f.writelines(index)


if __name__ == "__main__":
    main()

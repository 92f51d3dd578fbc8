"""Trains for a minute on drawn scenes, twice, and checks what training must do.

    python3 train/smoke.py [--dir DIR]

1. The held-out score rises: the matching score on scenes that training never saw, seen from another viewpoint.
2. Two runs give the same weights, bit for bit, although the second one is stopped half way and resumed.
3. The exported file holds the shipping network: folded, its outputs agree with the training form.
"""
import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np
import torch

import detector
import geometry
import loss
import metrics
import scenes
from model import Net, load_shipping, save_shipping, shipping_weights

HERE = pathlib.Path(__file__).resolve().parent
STEPS, SIZE = 60, 128
HELD_OUT = range(10_000, 10_006)


def train(pool, out, stop):
    subprocess.run([sys.executable, HERE / "train.py", "--pool", pool, "--out", out, "--steps", str(STEPS), "--stop", str(stop),
                    "--decay", "15", "--warmup", "10", "--pairs", "2", "--size", str(SIZE), "--average", "0.9", "--log-every", "15",
                    "--save-every", "1000"], check=True)


@torch.no_grad()
def matching_score(net):
    """How many true corners of held-out scenes find themselves in a warped copy, by nearest descriptor."""
    out = []
    for seed in HELD_OUT:
        rng = np.random.default_rng(seed)
        a, p = scenes.scene(rng, 256, "polygons")
        h = geometry.random_homography(rng, 256, 256, 0.3, (0.85, 1.2), 0.1, 0.03)
        b = cv2.warpPerspective(a, h, (256, 256))
        q = metrics.warp(h, p)
        ok = (q >= 4).all(1) & (q <= 251).all(1)
        p, q = p[ok], q[ok]
        da, db = (loss.sample(net(torch.from_numpy(g).float()[None, None] / 255)[1], torch.from_numpy(t).float()[None])[0].numpy()
                  for g, t in ((a, p), (b, q)))
        out.append(metrics.matching(detector.distance(da, db, False), p, q, h, (256, 256))[0])
    return float(np.mean(out))


def weights_digest(path):
    state = torch.load(path, weights_only=False)["net"]
    h = hashlib.sha256()
    for k in sorted(state):
        h.update(state[k].contiguous().numpy().tobytes())
    return h.hexdigest()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--dir", type=pathlib.Path)
    o = a.parse_args()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as tmp:
        d = o.dir or pathlib.Path(tmp)
        d.mkdir(parents=True, exist_ok=True)
        pool = d / "pool.npz"
        subprocess.run([sys.executable, HERE / "pool.py", "--out", pool, "--to", "64", "--views", "10"], check=True)
        torch.manual_seed(1)
        before = matching_score(Net().eval())
        train(pool, d / "first", STEPS)
        train(pool, d / "second", STEPS // 2 + 1)
        half = torch.load(d / "second/checkpoint.pt", weights_only=False)["step"]
        train(pool, d / "second", STEPS)
        first, second = (weights_digest(d / n / "checkpoint.pt") for n in ("first", "second"))
        c = torch.load(d / "first/checkpoint.pt", weights_only=False)
        net = Net()
        net.load_state_dict(c["net"])
        save_shipping(shipping_weights(c["net"]), d / "smoke.safetensors", {"license": "Apache-2.0"}, np.float32)
        shipped = load_shipping(d / "smoke.safetensors")
        x = torch.rand(1, 1, 96, 128, generator=torch.Generator().manual_seed(2))
        with torch.no_grad():
            gap = max(float((p - q).abs().max() / q.abs().max()) for p, q in zip(shipped(x), net.eval()(x)))
        after = matching_score(shipped)
    checks = [(f"held-out matching score rises: {before:.3f} -> {after:.3f}", after > before + 0.1),
              (f"same weights from one run and from one resumed at step {half}: {first[:12]}, {second[:12]}", first == second and half < STEPS),
              (f"folded network agrees with the trained one: {gap:.1e}", gap < 1e-4)]
    for text, ok in checks:
        print("ok  " if ok else "FAIL", text)
    failed = sum(not ok for _, ok in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

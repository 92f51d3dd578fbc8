"""Trains for a minute on drawn scenes, twice, and checks what training must do.

    python3 train/smoke.py [--dir DIR]

1. The held-out scores improve: the detector's loss and the share of right matches on scenes that training never saw.
2. Two runs give the same weights, bit for bit, although the second one is stopped half way and resumed.
3. The exported file holds the shipping network: folded, its outputs agree with the training form.
4. Two views agree best where they are of one thing, and lose the fewest of the points that they choose.
5. With --detector-only nothing but the detector's head learns.
"""
import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

import pool as patches
import train as training
from agreement import agreement_loss
from model import Net, load_shipping, log_scores, save_shipping, shipping_weights
from selection import selection_loss

HERE = pathlib.Path(__file__).resolve().parent
STEPS, SIZE = 60, 128
HELD_OUT = range(10_000, 10_012)


def run_training(pool, out, stop):
    subprocess.run([sys.executable, HERE / "train.py", "--pool", pool, "--out", out, "--steps", str(STEPS), "--stop", str(stop),
                    "--decay", "15", "--warmup", "10", "--pairs", "2", "--size", str(SIZE), "--average", "0.9", "--log-every", "15",
                    "--save-every", "1000", "--choice", "0.2", "--order", "1", "--still", "0.1", "--rounded"], check=True)


@torch.no_grad()
def held_out(net, path):
    """Detector's loss and share of right nearest neighbours over random views of patches that training never saw."""
    o = training.options(["--pool", str(path), "--out", "unused", "--steps", "1", "--pairs", "4", "--size", str(SIZE), "--fp32"])
    pool, scale = training.Pool(o.pool), torch.tensor(np.log(14.0), dtype=torch.float32)
    figures = np.mean([training.forward_loss(net, scale, pool, o, step, 0)[1] for step in range(4)], axis=0)
    return float(figures[0]), float(figures[2])


def head_alone(pool, weights, out):
    """Layers that a few steps with --detector-only change."""
    subprocess.run([sys.executable, HERE / "train.py", "--pool", pool, "--out", out, "--steps", "3", "--warmup", "1", "--pairs", "2",
                    "--size", str(SIZE), "--start", weights, "--detector-only", "--repeated", "4", "--matched", "1", "--light", "2",
                    "--still", "0.5"], check=True)
    start, end = (torch.load(out / f"{name}.pt", weights_only=False)["net"] for name in ("start", "checkpoint"))
    return sorted({int(k.split(".")[1]) for k in start if not torch.equal(start[k], end[k])})


def two_views():
    """Losses (choice, order, repeated, matched) of views of one map, the second a cell to the right; of that move denied; of two maps."""
    gen, cells = torch.Generator().manual_seed(3), SIZE // 8
    logits, raw = 4 * torch.randn(2, 65, cells, cells, generator=gen), torch.randn(2, 256, cells, cells, generator=gen)
    inside, still = torch.ones(2, SIZE, SIZE, dtype=torch.bool), torch.eye(3).repeat(2, 1, 1)
    right = still.clone()
    right[:, 0, 2] = 8
    moved, scores = log_scores(logits.roll(1, 3)), log_scores(logits)
    cases = (moved, raw.roll(1, 3), right), (moved, raw.roll(1, 3), still), (scores.flip(0), raw.flip(0), still)
    return [torch.stack([*agreement_loss(scores, b, h, inside, inside),
                         *(loss.mean() for loss in selection_loss(scores, b, raw, d, h, inside, inside))]) for b, d, h in cases]


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
        patches.save(d / "heldout.npz", [patches.one(seed, (), share=0, views=6, weights=None, device="cpu") for seed in HELD_OUT])
        before = held_out(Net().eval(), d / "heldout.npz")
        run_training(pool, d / "first", STEPS)
        run_training(pool, d / "second", STEPS // 2 + 1)
        half = torch.load(d / "second/checkpoint.pt", weights_only=False)["step"]
        run_training(pool, d / "second", STEPS)
        first, second = (weights_digest(d / n / "checkpoint.pt") for n in ("first", "second"))
        c = torch.load(d / "first/checkpoint.pt", weights_only=False)
        net = Net()
        net.load_state_dict(c["net"])
        save_shipping(shipping_weights(c["net"]), d / "smoke.safetensors", {"license": "Apache-2.0"}, np.float32)
        shipped = load_shipping(d / "smoke.safetensors")
        x = torch.rand(1, 1, 96, 128, generator=torch.Generator().manual_seed(2))
        with torch.no_grad():
            gap = max(float((p - q).abs().max() / q.abs().max()) for p, q in zip(shipped(x), net.eval()(x)))
        after = held_out(shipped, d / "heldout.npz")
        learnt = head_alone(pool, d / "smoke.safetensors", d / "head")
    same, denied, other = two_views()
    figures = lambda t: " ".join(f"{v:.3f}" for v in t.tolist())
    checks = [(f"views agree that are of one map: {figures(same)}, and no others: {figures(denied)}, {figures(other)}",
               bool((same < 0.7 * denied).all() and (same < 0.7 * other).all())),
              (f"with --detector-only layers {learnt} learn, no others", learnt == list(training.HEAD)),
              (f"detector's loss on held-out scenes falls: {before[0]:.3f} -> {after[0]:.3f}", after[0] < before[0]),
              (f"right matches on held-out scenes rise: {before[1]:.3f} -> {after[1]:.3f}", after[1] > before[1] + 0.1),
              (f"same weights from one run and from one resumed at step {half}: {first[:12]}, {second[:12]}", first == second and half < STEPS),
              (f"folded network agrees with the trained one: {gap:.1e}", gap < 1e-4)]
    for text, ok in checks:
        print("ok  " if ok else "FAIL", text)
    failed = sum(not ok for _, ok in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

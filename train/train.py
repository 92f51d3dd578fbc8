"""Trains the network: detector and descriptor together, on pairs of random views of the pool's patches.

    python3 train/train.py --pool shard.npz [shard.npz …] --out run/ --steps 20000 [--device cuda] [--workers 2]

Checkpoints go to OUT/checkpoint.pt; a run that is started again goes on from there, and since every random number
comes from (seed, step, worker), it ends at the same weights as a run that was never stopped. On the CPU several
single-threaded workers share each step (their gradients are averaged): on a busy machine that waits far less than
one worker with several threads. The learning rate warms up, stays, and falls to zero over the last --decay steps.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time

# glibc returns every large buffer to the kernel, which then clears it again: half of the time of a step on the CPU.
# Keeping them, on huge pages, must be said before the process starts.
MEMORY = {"MALLOC_MMAP_THRESHOLD_": "17179869184", "MALLOC_TRIM_THRESHOLD_": "17179869184",
          "MALLOC_TOP_PAD_": "268435456", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "OMP_NUM_THREADS": "1"}
if __name__ == "__main__" and "--device" not in sys.argv and any(os.environ.get(k) != v for k, v in MEMORY.items()):
    os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **MEMORY})

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import loss as L  # noqa: E402
from agreement import WINDOW, agreement_loss, peaks  # noqa: E402
from model import Net, calibration_shift, log_scores, mean_weights, training_state  # noqa: E402
from selection import as_calibrated, selection_loss  # noqa: E402

GOLD = 0x9E3779B97F4A7C15
# Losses, but for match and cell: shares that are right. repeated and matched: shares that are not, of what is chosen.
FIGURES = ("detector", "descriptor", "match", "cell", "choice", "order", "repeated", "matched")
HEAD = (8, 9)  # layers of the detector alone


class Pool:
    """All shards in memory; `batch(i)` pads labels to the longest of the batch."""

    def __init__(self, paths):
        parts = [np.load(p) for p in paths]
        self.image = np.concatenate([p["image"] for p in parts])
        self.label = np.concatenate([p["label"] for p in parts])
        self.start = np.concatenate([[0], np.cumsum(np.concatenate([p["count"] for p in parts]))])

    def __len__(self):
        return len(self.image)

    def batch(self, index, device):
        rows = [self.label[self.start[i]:self.start[i + 1]] for i in index]
        pad = np.zeros((len(rows), max(8, max(map(len, rows))), 3), np.float32)
        for k, r in enumerate(rows):
            pad[k, :len(r)] = r
        image = torch.from_numpy(self.image[index]).to(device).float()[:, None] / 255
        return image, torch.from_numpy(pad).to(device)


def rate(o, step):
    left = max(0, o.steps - step) / max(1, o.decay)
    return o.lr * min(1.0, (step + 1) / o.warmup) * min(1.0, left)


def forward_loss(net, log_scale, pool, o, step, rank):
    """One worker's share of a step: the loss and figures for the log."""
    seed = (o.seed * GOLD + step * 64 + rank) % (1 << 63)
    gen = torch.Generator(o.device).manual_seed(seed)
    index = np.random.default_rng(seed).integers(0, len(pool), o.pairs)
    image, labels = pool.batch(index, o.device)
    invert = torch.rand(o.pairs, 1, 1, 1, generator=gen, device=o.device) < 0.08
    image = torch.where(invert, 1 - image, image)
    strength = min(1.0, 0.3 + step / o.ramp)
    patch, n = image.shape[-1], o.pairs
    ha = L.views(n, o.size, patch, 0.5 * strength, gen, o.device)
    hb = L.views(n, o.size, patch, strength, gen, o.device)
    still = torch.rand(n, 1, 1, generator=gen, device=o.device) < o.still
    hb = torch.where(still, ha, hb)
    a, ia = L.warp(image, ha, o.size)
    b, ib = L.warp(image, hb, o.size)
    x = torch.cat([L.relight(a, gen), L.relight(b, gen)]).contiguous(memory_format=torch.channels_last)
    ta, ma, pa, oka = L.targets(labels, ha, ia, o.size)
    tb, mb, _, _ = L.targets(labels, hb, ib, o.size)
    h12 = torch.linalg.inv(hb) @ ha
    with torch.autocast(o.device.split(":")[0], dtype=torch.bfloat16, enabled=o.bf16):
        logits, desc = net(x, n if o.rounded else 0)
    la, lb = log_scores(logits).split(n)
    own = peaks(la, L.POINTS // 2)
    p, q, good = L.correspondences(pa, oka, labels[..., 2], own, h12, ia, ib, gen)
    target, mask = torch.cat([ta, tb]), torch.cat([ma, mb])
    det = L.detector_loss(logits, target, mask)
    des, hit = L.descriptor_loss(desc[:n], desc[n:], p, q, good, log_scale)
    choice = order = det.new_zeros(())
    if o.choice or o.order:
        offset = torch.randint(0, WINDOW // 2, (2,), generator=gen, device=o.device).tolist()
        choice, order = agreement_loss(la, lb, h12, ia, ib, offset)
    repeated = matched = det.new_zeros(())
    if o.repeated or o.matched:
        sa, sb = log_scores(as_calibrated(logits, o.dustbin)).split(n)
        repeated, matched = ((loss * (1 + (o.light - 1) * still.flatten())).mean() for loss in selection_loss(sa, sb, desc[:n], desc[n:], h12, ia, ib))
    with torch.no_grad():
        s = logits.float().flatten(2).transpose(1, 2)[mask].softmax(-1)[:, :64]
        t = target[mask][:, :64]
        strong = t.sum(-1) > 0.6 * L.HEIGHT
        cell = (s[strong].argmax(1) == t[strong].argmax(1)).float().mean().nan_to_num()  # 0 where no label is strong
    value = o.weight * det + des + o.choice * choice + o.order * order + o.repeated * repeated + o.matched * matched
    return value, [t.item() for t in (det, des, hit, cell, choice, order, repeated, matched)]


class Average:
    """Exponential average of the weights and batch statistics: what is exported."""

    def __init__(self, net, decay):
        self.decay, self.state = decay, {k: v.detach().clone().float() for k, v in net.state_dict().items() if v.is_floating_point()}

    @torch.no_grad()
    def update(self, net, step):
        d = min(self.decay, (step + 1) / (step + 10))
        now = net.state_dict()
        for k, v in self.state.items():
            v.lerp_(now[k].float(), 1 - d)


def share(net, log_scale, workers):
    """Averages gradients and batch statistics over the workers, in one message."""
    if workers == 1:
        return
    parts = [p.grad for p in [*net.parameters(), log_scale] if p.grad is not None] + [b for b in net.buffers() if b.is_floating_point()]
    flat = torch.cat([p.flatten() for p in parts])
    dist.all_reduce(flat)
    flat /= workers
    at = 0
    for p in parts:
        p.copy_(flat[at:at + p.numel()].view_as(p))
        at += p.numel()


def save(path, o, step, net, average, opt, log_scale):
    tmp = path.with_suffix(".tmp")
    torch.save({"step": step, "net": net.state_dict(), "average": average.state, "opt": opt.state_dict(),
                "log_scale": log_scale.detach(), "options": {k: v for k, v in vars(o).items() if k not in ("out", "start")}}, tmp)
    tmp.replace(path)


def shipped(paths):
    return [p.suffix for p in paths] == [".safetensors"]


def begin(paths, net, log_scale):
    """Begins with the mean of the averaged weights of checkpoints, or with one file of shipped weights."""
    if shipped(paths):
        net.load_state_dict(training_state(*paths))
        return
    loaded = [torch.load(p, map_location=log_scale.device, weights_only=True) for p in paths]
    net.load_state_dict({**net.state_dict(), **mean_weights(loaded)})
    log_scale.data.copy_(sum(c["log_scale"] for c in loaded) / len(loaded))


def work(rank, o):
    torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    torch.use_deterministic_algorithms(o.device == "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # costs 5 % of a step; nothing reads such memory
    if o.workers > 1:
        dist.init_process_group("gloo", init_method=f"file://{o.out.resolve() / 'rendezvous'}", rank=rank, world_size=o.workers)
    torch.manual_seed(o.seed)
    pool = Pool(o.pool)
    net = Net().to(o.device, memory_format=torch.channels_last).train()
    for c in net.conv[:o.frozen]:
        c.requires_grad_(False)
    log_scale = torch.nn.Parameter(torch.tensor(math.log(14.0), device=o.device), requires_grad=not o.detector_only)
    if o.detector_only:  # batch statistics stay as well
        net.eval().requires_grad_(False)
        for i in HEAD:
            net.conv[i].requires_grad_(True), net.norm[i].requires_grad_(True)
    opt = torch.optim.AdamW([{"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 1e-3},
                             {"params": [p for p in net.parameters() if p.ndim <= 1] + [log_scale], "weight_decay": 0.0}],
                            lr=o.lr, betas=(0.9, 0.99))
    average, first = Average(net, o.average), 0
    path = o.out / "checkpoint.pt"
    if path.exists():
        c = torch.load(path, map_location=o.device, weights_only=True)
        net.load_state_dict(c["net"])
        opt.load_state_dict(c["opt"])
        log_scale.data.copy_(c["log_scale"])
        average.state, first = c["average"], c["step"]
    elif o.start:
        begin(o.start, net, log_scale)
        average = Average(net, o.average)
        if rank == 0:
            save(o.out / "start.pt", o, 0, net, average, opt, log_scale)
    log = open(o.out / "log.jsonl", "a", buffering=1) if rank == 0 else None
    total, count, t0 = np.zeros(len(FIGURES)), 0, time.time()
    last = min(o.steps, o.stop or o.steps)
    for step in range(first, last):
        for g in opt.param_groups:
            g["lr"] = rate(o, step)
        value, figures = forward_loss(net, log_scale, pool, o, step, rank)
        opt.zero_grad(set_to_none=True)
        value.backward()
        with torch.no_grad():
            share(net, log_scale, o.workers)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 4.0)
        opt.step()
        log_scale.data.clamp_(0, math.log(40.0))
        average.update(net, step)
        total += figures
        count += 1
        if rank == 0 and ((step + 1) % o.log_every == 0 or step + 1 == last):
            line = {"step": step + 1, "time": round(time.time() - t0, 1), "lr": round(rate(o, step), 6),
                    **{name: round(float(t) / count, 4) for name, t in zip(FIGURES, total)}, "scale": round(log_scale.exp().item(), 2)}
            print(json.dumps(line), file=log)
            print(" ".join(f"{k} {v}" for k, v in line.items()), flush=True)
            total[:], count = 0, 0
        if rank == 0 and ((step + 1) % o.save_every == 0 or step + 1 == last):
            save(path, o, step + 1, net, average, opt, log_scale)
        if rank == 0 and step + 1 in o.keep:
            save(path.with_name(f"checkpoint-{step + 1}.pt"), o, step + 1, net, average, opt, log_scale)
    if o.workers > 1:
        dist.barrier()
        dist.destroy_process_group()


def options(argv=None):
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--pool", nargs="+", required=True, help="shards that pool.py made")
    a.add_argument("--out", type=pathlib.Path, required=True)
    a.add_argument("--steps", type=int, required=True, help="total, those of earlier runs included")
    a.add_argument("--stop", type=int, help="end after this step; the schedule stays that of --steps")
    a.add_argument("--decay", type=int, default=3000, help="steps over which the rate falls to zero at the end")
    a.add_argument("--pairs", type=int, default=6, help="pairs per worker and step")
    a.add_argument("--size", type=int, default=160, help="side of a view, a multiple of 8")
    a.add_argument("--lr", type=float, default=1.5e-3)
    a.add_argument("--warmup", type=int, default=200)
    a.add_argument("--ramp", type=int, default=3000, help="steps until views are as strong as they get")
    a.add_argument("--weight", type=float, default=8.0, help="of the detector's loss; the descriptor's counts 1")
    a.add_argument("--choice", type=float, default=0.0, help="weight of two views' choosing the same points where no label tells which")
    a.add_argument("--order", type=float, default=0.0, help="weight of the same order of their windows")
    a.add_argument("--repeated", type=float, default=0.0, help="weight of the share of chosen points that the other view does not choose")
    a.add_argument("--matched", type=float, default=0.0, help="weight of the share of them that the descriptors do not match")
    a.add_argument("--light", type=float, default=1.0, help="these two count so many times where views differ by light alone")
    a.add_argument("--detector-only", action="store_true", help="only the detector's head learns")
    a.add_argument("--still", type=float, default=0.0, help="share of pairs whose views differ by light alone")
    a.add_argument("--rounded", action="store_true", help="one view of each pair sees the rounding of int8")
    a.add_argument("--start", type=pathlib.Path, nargs="+", default=[], metavar="CHECKPOINT",
                   help="begin with the mean of their averaged weights, or with a safetensors file; it is written to OUT/start.pt")
    a.add_argument("--frozen", type=int, default=0, choices=(0, 1, 2),
                   help="layers from the front that stay as they are: the two at full resolution learn first; a quarter less time a step")
    a.add_argument("--average", type=float, default=0.998)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--device", default="cpu")
    a.add_argument("--workers", type=int, default=2)
    a.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--fp32", dest="bf16", action="store_false")
    a.add_argument("--log-every", type=int, default=50)
    a.add_argument("--save-every", type=int, default=250)
    a.add_argument("--keep", type=int, nargs="*", default=[], help="steps whose checkpoints stay, for export.py to average")
    o = a.parse_args(argv)
    o.dustbin = calibration_shift(*o.start) if shipped(o.start) else 0.0  # what calibration adds: points are chosen by the scores with it
    return o


def wait(team):
    """The worst exit status of the workers. One that fails takes the others along, which would wait for it for ever."""
    while any(p.poll() is None for p in team):
        if any(p.returncode for p in team):
            for p in team:
                p.terminate()
        time.sleep(0.2)
    return max(abs(p.returncode) for p in team)


def main(argv=None):
    o = options(argv)
    if o.device != "cpu":
        o.workers = 1
    o.out.mkdir(parents=True, exist_ok=True)
    if o.workers == 1:
        work(0, o)
    elif o.rank is not None:
        work(o.rank, o)
    else:  # plain processes with this script's name, so that one signal by name reaches all of them
        (o.out / "rendezvous").unlink(missing_ok=True)
        args = [sys.executable, __file__, *(argv or sys.argv[1:])]
        team = [subprocess.Popen(args + ["--rank", str(r)]) for r in range(o.workers)]
        sys.exit(wait(team))


if __name__ == "__main__":
    main()

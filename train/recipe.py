"""The whole recipe in one command: pictures, labels, two rounds of training, two stages without labels, export, evaluation.

    python3 train/recipe.py --dir work/ --preset gpu      about half an hour on one large GPU with 16 CPU cores
    python3 train/recipe.py --dir work/ --preset cpu      about six hours on two CPU cores: as the weights here were made
    python3 train/recipe.py --dir work/ --preset tiny     minutes: shows that every step runs

What the two rounds end with is the mean of several checkpoints; from there the next stage goes on without labels for blank areas: two
views must agree (agreement.py), one of them rounded as in int8. In the last one the detector's head alone learns which points are worth
choosing: those that the other view chooses and that the descriptors match (selection.py).

Each step leaves its file below --dir and is skipped when the file is there, so a stopped run goes on where it was.
Round one learns the labels of the corner measure; round two goes on with these and with labels by the detector of
round one, on patches that it has not seen.
"""
import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PRESETS = {
    #         patches of round 1, 2; views; steps of round 1, of both; decay; steps averaged with the last; steps of the two stages without
    #         labels; pairs; view's side; device, workers
    "gpu": dict(first=12000, second=8000, views=32, stop=12000, steps=26000, decay=9000, keep=(9000, 14000, 20000), agree=1000, select=900, pairs=32, size=208, device="cuda", workers=1),
    "cpu": dict(first=2400, second=5800, views=16, stop=3400, steps=14000, decay=5000, keep=(3000, 5200, 6600), agree=500, select=450, pairs=8, size=160, device="cpu", workers=2),
    "tiny": dict(first=24, second=16, views=6, stop=6, steps=12, decay=4, keep=(6, 9), agree=4, select=4, pairs=2, size=96, device="cpu", workers=2),
}
SHARD = 2000
AGREE = ("--choice", 1, "--order", 2, "--still", 0.15, "--rounded", "--lr", 8e-4, "--warmup", 50, "--decay", 1, "--ramp", 100, "--frozen", 2)
SELECT = ("--choice", 0.5, "--order", 1.5, "--repeated", 8, "--matched", 2, "--light", 2.5, "--still", 0.4, "--weight", 6, "--lr", 1e-3,
          "--warmup", 30, "--ramp", 1, "--detector-only")


def call(script, *args):
    command = [sys.executable, str(HERE / script), *map(str, args)]
    print("+", " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True)


def shards(o, p, name, count, offset, extra):
    out = []
    for first in range(0, count, SHARD):
        path = o.dir / f"{name}-{first}.npz"
        if not path.exists():
            call("pool.py", "--data", o.dir / "data", "--out", path, "--from", offset + first, "--to", offset + min(count, first + SHARD),
                 "--views", p["views"], "--jobs", os.cpu_count(), *extra)
        out.append(path)
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--dir", type=pathlib.Path, required=True)
    a.add_argument("--preset", choices=PRESETS, default="cpu")
    o = a.parse_args()
    p = PRESETS[o.preset]
    o.dir.mkdir(parents=True, exist_ok=True)
    run, weights, sets = o.dir / "run", o.dir / "superpoint.safetensors", o.dir / "sets"
    call("test_metrics.py")
    call("data.py", "fetch", o.dir / "data")
    common = ["--pairs", p["pairs"], "--size", p["size"], "--device", p["device"], "--workers", p["workers"], "--weight", 12]
    train = [*common, "--out", run, "--steps", p["steps"], "--decay", p["decay"], "--ramp", max(10, p["steps"] // 6), "--keep", *p["keep"]]
    if not (sets / "heldout").exists():
        call("pairs.py", "heldout", "--data", o.dir / "data", "--out", sets / "heldout")
    pool = shards(o, p, "first", p["first"], 0, [])
    if p["second"]:
        call("train.py", "--pool", *pool, *train, "--stop", p["stop"])
        if not (o.dir / "first.safetensors").exists():
            call("export.py", run / "checkpoint.pt", o.dir / "first.safetensors", "--calibrate", sets / "heldout")
        pool += shards(o, p, "second", p["second"], 1_000_000, ["--weights", o.dir / "first.safetensors", "--device", p["device"]])
    call("train.py", "--pool", *pool, *train)
    kept = [run / "checkpoint.pt", *(run / f"checkpoint-{step}.pt" for step in p["keep"])]
    agree, agreed, select = o.dir / "agree", o.dir / "agreed.safetensors", o.dir / "select"
    call("train.py", "--pool", *pool, *common, *AGREE, "--out", agree, "--start", *kept, "--steps", p["agree"])
    if not agreed.exists():
        call("export.py", agree / "checkpoint.pt", agree / "start.pt", agreed, "--calibrate", sets / "heldout")
    call("train.py", "--pool", *pool, *common, *SELECT, "--out", select, "--start", agreed, "--steps", p["select"], "--decay", 2 * p["select"] // 3)
    call("export.py", select / "checkpoint.pt", select / "start.pt", weights, "--calibrate", sets / "heldout")
    call("calibrate.py", "--data", o.dir / "data", "--weights", weights)
    methods = ["sift", "orb", "akaze", "fast", "harris", "shi"] if o.preset != "tiny" else ["harris"]
    call("evaluate.py", sets / "heldout", "--method", weights, *methods, "--json", o.dir / "evaluation.json", "--device", p["device"])


if __name__ == "__main__":
    main()

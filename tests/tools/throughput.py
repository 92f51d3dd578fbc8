"""Extraction of many pictures: how near it comes to what its parts allow, and whether ten kills change a byte.

First all pictures at once; then reading with decoding, the network alone, and the whole extraction of a batch in turns,
so that what else the machine does falls on all of them. Where the network runs on the same cores as decoding, the two
cannot overlap for free: the bound is then the sum of their times, not the larger of them; both are printed.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from superpoint import SuperPoint  # noqa: E402
from superpoint._library import CError, CFeatures, CFrame, CMaps, CParams, check, lib  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("SUPERPOINT", "build/bin/superpoint"))


def make_pictures(folder, count, width, height):
    """Different crops of the sample picture, as JPEG."""
    source = Image.open(ROOT / "sample_data" / "bridge.jpg").convert("RGB")
    rng = random.Random(3)
    os.makedirs(folder)
    for i in range(count):
        x, y = rng.randrange(source.width - width), rng.randrange(source.height - height)
        source.crop((x, y, x + width, y + height)).save(folder / f"p{i:05d}.jpg", quality=88)


def decode(path, params, frame):
    error = CError()
    data = path.read_bytes()
    check(lib.sp_frame_decode(data, len(data), params, frame, None, error), error)


def decode_rate(paths, threads):
    params = CParams()
    lib.sp_params_default(params)

    def work(part):
        for path in part:
            frame = CFrame()
            decode(path, params, frame)
            lib.sp_frame_free(frame)

    workers = [threading.Thread(target=work, args=(paths[i::threads],)) for i in range(threads)]
    began = time.monotonic()
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return len(paths) / (time.monotonic() - began)


def engine_rate(detector, path, count):
    """The network, and selection with sampling, on one frame over and over."""
    import ctypes

    params, frame, error, found, maps = CParams(), CFrame(), CError(), CFeatures(), CMaps()
    lib.sp_params_default(params)
    decode(path, params, frame)
    frames = (ctypes.POINTER(CFrame) * 1)(ctypes.pointer(frame))
    began = time.monotonic()
    for _ in range(count):
        check(lib.sp_engine_run(detector._engine, frames, 1, maps, error), error)
        check(lib.sp_features_extract(maps, frame, params, found, error), error)
        lib.sp_features_free(found)
    rate = count / (time.monotonic() - began)
    lib.sp_maps_free(maps)
    lib.sp_frame_free(frame)
    return rate


def extract(folder, output, pictures="pictures"):
    began = time.monotonic()
    subprocess.run([PROGRAM, "extract", pictures, "--output", output, "--quiet"], cwd=folder, check=True)
    return time.monotonic() - began


def digest(path):
    state = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            state.update(block)
    return state.hexdigest()


def busy():
    """Processor seconds since the start: of the whole machine, and of this process with its children."""
    with open("/proc/stat") as file:
        user, nice, system = map(int, file.readline().split()[1:4])
    own = os.times()
    return (user + nice + system) / os.sysconf("SC_CLK_TCK"), sum(own[:4])


def measure(folder, paths, turns):
    """Decoding alone, the network alone, and extraction, in turns."""
    cores, count = len(os.sched_getaffinity(0)), len(paths)
    detector = SuperPoint()
    rows = []
    before = busy()
    start = extract(folder, "start.h5", "some/" + paths[0].name)  # the program's start and end
    for turn in range(turns):
        engine, decoding = engine_rate(detector, paths[0], count), decode_rate(paths, cores)
        seconds = extract(folder, f"turn{turn}.h5", "some") - start
        os.remove(folder / f"turn{turn}.h5")
        whole = count / seconds
        rows.append({"decode": decoding, "engine": engine, "extract": whole, "of_the_slower": whole / min(engine, decoding),
                     "of_the_sum": whole * (1 / engine + 1 / decoding)})
        print(json.dumps({k: round(v, 3) for k, v in rows[-1].items()}), flush=True)
    machine, own = (after - earlier for after, earlier in zip(busy(), before))
    medians = {key: float(np.median([row[key] for row in rows])) for key in rows[0]}
    print(f"{cores} cores, {detector.info.precision} on {detector.info.level}: medians of {turns} turns of {count}: decoding "
          f"{medians['decode']:.1f}/s, network {medians['engine']:.1f}/s, extraction {medians['extract']:.1f}/s: "
          f"{100 * medians['of_the_slower']:.0f} % of the slower alone, {100 * medians['of_the_sum']:.0f} % of the two "
          f"one after the other; others used {100 * (1 - own / machine):.0f} % of the processors meanwhile", flush=True)


def overhead(folder, paths, turns):
    """Processor time of an extraction on one thread, and of its two parts: what the rest costs, however busy the machine."""
    detector = SuperPoint(threads=1)
    shares = []
    for turn in range(turns):
        began = time.process_time()
        decode_rate(paths, 1)
        engine_rate(detector, paths[0], len(paths))
        parts = time.process_time() - began
        before = os.times()
        subprocess.run([PROGRAM, "extract", "some", "--output", f"cpu{turn}.h5", "--quiet", "--threads", "1", "--decoders", "1"],
                       cwd=folder, check=True)
        after = os.times()
        whole = after.children_user + after.children_system - before.children_user - before.children_system
        os.remove(folder / f"cpu{turn}.h5")
        shares.append(parts / whole)
    print(f"processor time on one thread: decoding and the network are {100 * np.median(shares):.0f} % of the extraction's "
          f"({100 * min(shares):.0f}...{100 * max(shares):.0f} % in {turns} turns)", flush=True)


def stored(folder):
    """Bytes of the journal of an extraction that has not ended."""
    try:
        return sum(entry.stat().st_size for entry in os.scandir(folder))
    except FileNotFoundError:  # not begun, or just done
        return 0


def kill_and_resume(folder, whole, times):
    """Kill at random shares of the work, one in each of `times` equal parts but the very end, so that all kills fall into the
    run however fast the machine is at the moment. The journal takes about as much room as the output. The kill comes within
    the time of the next few pictures, not when one is just stored."""
    rng = random.Random()
    size, kills = (folder / "clean.h5").stat().st_size, 0
    for part in range(times):
        share = min((part + rng.random()) / times, 0.97)
        process = subprocess.Popen([PROGRAM, "extract", "pictures", "--output", "killed.h5", "--quiet"], cwd=folder)
        while process.poll() is None and stored(folder / "killed.h5.partial") < share * size:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.01) * whole)
        if process.poll() is None:
            process.kill()
            kills += 1
        process.wait()
    extract(folder, "killed.h5")
    same = digest(folder / "clean.h5") == digest(folder / "killed.h5")
    print(f"killed {kills} times and resumed: {'the same bytes' if same else 'DIFFERENT BYTES'} as one clean run", flush=True)
    return kills == times and same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--size", default="1024x768", help="of the pictures")
    parser.add_argument("--batch", type=int, default=100, help="pictures of one turn of the timing")
    parser.add_argument("--turns", type=int, default=5, help="0: only kill")
    parser.add_argument("--kills", type=int, default=10, help="0: only time")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        make_pictures(folder / "pictures", options.pictures, *map(int, options.size.split("x")))
        paths = sorted((folder / "pictures").iterdir())
        whole = extract(folder, "clean.h5")
        print(f"{options.pictures} pictures of {options.size}: {whole:.1f} s, {options.pictures / whole:.1f}/s", flush=True)
        batch = paths[: options.batch]
        os.makedirs(folder / "some")
        for path in batch:
            os.link(path, folder / "some" / path.name)
        if options.turns > 0:
            measure(folder, batch, options.turns)
            overhead(folder, batch, options.turns)
        return 0 if options.kills == 0 or kill_and_resume(folder, whole, options.kills) else 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Decoding and resizing a JPEG to the network's frame: this library against Pillow, in one interleaved run.

    python3 bench/decode_resize.py [--rounds 200] [--json] [picture.jpg]

Both turn the same bytes into the red plane of 640 x 480, on one thread; that the planes are equal is checked first.
Pillow does what the published server does, Image.open(...).convert("RGB").resize((640, 480), BILINEAR), and takes the
red channel. Times are of the wall clock and of the processor; on a busy machine only the latter say much. The library
is found as by tests/parity/libsuperpoint.py; SUPERPOINT_CPU=c forces its plain kernels.
"""
from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import pathlib
import platform
import statistics
import sys
import time

import numpy as np
from PIL import Image, features

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "parity"))
from libsuperpoint import Error, Frame, Library  # noqa: E402

SIZE = (640, 480)


def pillow(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB").resize(SIZE, Image.Resampling.BILINEAR).getchannel(0))


def timed(call) -> tuple[float, float]:
    """Milliseconds of the wall clock and of this thread's processor."""
    wall, cpu = time.perf_counter(), time.thread_time()
    call()
    return (time.perf_counter() - wall) * 1e3, (time.thread_time() - cpu) * 1e3


def machine() -> dict:
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.machine(), "cpus": os.cpu_count(), "load": os.getloadavg()[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", default=str(ROOT / "sample_data" / "bridge.jpg"))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    data = pathlib.Path(options.picture).read_bytes()
    library = Library()
    if not np.array_equal(library.frame(data), pillow(data)):
        print("the two frames differ", file=sys.stderr)
        return 1
    error, frame, params = Error(), Frame(), library.params()

    def ours() -> None:
        library.check(library.lib.sp_frame_decode(data, ctypes.c_size_t(len(data)), ctypes.byref(params),
                                                  ctypes.byref(frame), None, ctypes.byref(error)), error)
        library.lib.sp_frame_free(ctypes.byref(frame))

    times: dict[str, list[tuple[float, float]]] = {"superpoint": [], "pillow": []}
    for i in range(options.rounds + 10):
        pair = timed(ours), timed(lambda: pillow(data))
        if i >= 10:  # the first ones warm caches
            for name, value in zip(times, pair):
                times[name].append(value)
    result: dict = {"machine": machine(), "picture": pathlib.Path(options.picture).name, "bytes": len(data),
                    "rounds": options.rounds, "pillow_version": Image.__version__, "pillow_libjpeg": features.version("libjpeg_turbo")}
    for name, values in times.items():
        result[name] = {}
        for clock, series in zip(("wall", "cpu"), zip(*values)):
            result[name][clock + "_min_ms"] = round(min(series), 3)
            result[name][clock + "_median_ms"] = round(statistics.median(series), 3)
    result["pillow_to_superpoint"] = {
        key: round(result["pillow"][key] / value, 2) for key, value in result["superpoint"].items()}
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        keys = list(result["superpoint"])
        print(" " * 22 + "".join(f"{key:>16}" for key in keys))
        for name in ("superpoint", "pillow", "pillow_to_superpoint"):
            print(f"{name:22}" + "".join(f"{result[name][key]:16.2f}" for key in keys))
    return 0


if __name__ == "__main__":
    sys.exit(main())

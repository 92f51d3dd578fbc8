"""Matching beside OpenCV's brute-force matcher and FAISS's flat index, in turns in one run.

Two tasks on unit vectors of 256 float32: mutual nearest neighbours, and the two nearest in one direction (for a ratio).
Each library gets all cores. Prints minimum and median over the turns, and checks that the answers agree.
"""

import os
import sys
import time
from pathlib import Path

import cv2
import faiss
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from superpoint import Matcher  # noqa: E402

CORES = len(os.sched_getaffinity(0))
TURNS = {512: 60, 1024: 40, 2048: 20, 4096: 7}
MUTUAL, RATIO = Matcher(threads=CORES), Matcher(mutual=False, max_ratio=0.9, threads=CORES)


def descriptors(rng, count, like=None):
    x = rng.standard_normal((count, 256)).astype(np.float32)
    if like is not None:
        half = count // 2
        x[:half] = like[rng.permutation(len(like))[:half]] + 0.04 * x[:half]
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ours_mutual(a, b):
    return MUTUAL.match(a, b)[0]


def faiss_mutual(a, b):
    there, back = faiss.IndexFlatIP(256), faiss.IndexFlatIP(256)
    there.add(b)
    back.add(a)
    i = there.search(a, 1)[1][:, 0]
    j = back.search(b, 1)[1][:, 0]
    keep = j[i] == np.arange(len(a))
    return np.stack([np.flatnonzero(keep), i[keep]], 1)


def opencv_mutual(a, b):
    found = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a, b)
    return np.array(sorted((m.queryIdx, m.trainIdx) for m in found))


def ours_ratio(a, b):
    return RATIO.match(a, b)[0]


def faiss_ratio(a, b):
    index = faiss.IndexFlatIP(256)
    index.add(b)
    s, i = index.search(a, 2)
    d = np.maximum(0, 2 - 2 * s)
    keep = d[:, 0] <= 0.81 * d[:, 1]
    return np.stack([np.flatnonzero(keep), i[keep, 0]], 1)


def opencv_ratio(a, b):
    found = cv2.BFMatcher(cv2.NORM_L2).knnMatch(a, b, 2)
    return np.array([(m.queryIdx, m.trainIdx) for m, n in found if m.distance <= 0.9 * n.distance])


TASKS = {"mutual": {"ours": ours_mutual, "FAISS": faiss_mutual, "OpenCV": opencv_mutual},
         "ratio": {"ours": ours_ratio, "FAISS": faiss_ratio, "OpenCV": opencv_ratio}}


def main():
    faiss.omp_set_num_threads(CORES)
    cv2.setNumThreads(CORES)
    rng = np.random.default_rng(5)
    slower = 0
    print(f"{CORES} cores, OpenCV {cv2.__version__}, FAISS {faiss.__version__}; milliseconds, minimum (median)")
    for task, libraries in TASKS.items():
        for count, turns in TURNS.items():
            a = descriptors(rng, count)
            b = descriptors(rng, count, like=a)
            answers = {name: run(a, b) for name, run in libraries.items()}
            reference = {tuple(p) for p in answers["ours"].tolist()}
            for name, answer in answers.items():
                differ = reference ^ {tuple(p) for p in np.asarray(answer).tolist()}
                assert len(differ) <= 2 + count // 1000, (task, count, name, len(differ))
            times = {name: [] for name in libraries}
            for _ in range(turns):
                for name, run in libraries.items():
                    began = time.perf_counter()
                    run(a, b)
                    times[name].append(1e3 * (time.perf_counter() - began))
            texts = [f"{name} {min(t):.2f} ({np.median(t):.2f})" for name, t in times.items()]
            ratios = [f"{min(times[n]) / min(times['ours']):.1f}x (median {np.median(times[n]) / np.median(times['ours']):.1f}x) {n}"
                      for n in libraries if n != "ours"]
            print(f"{task:6} {count:5} x {count}: {', '.join(texts)}; as fast as " + ", ".join(ratios), flush=True)
            slower += any(min(times[n]) < min(times["ours"]) for n in libraries if n != "ours")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())

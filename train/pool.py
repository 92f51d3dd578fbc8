"""Builds a shard of the training pool: grey patches with labels.

    python3 train/pool.py --data DIR --out shard.npz --from 0 --to 2000 [--weights W.safetensors] [--jobs 2]

Half of the patches are crops of the manifest's training pictures at many scales, half are scenes that `scenes.py`
draws. Labels come from homographic adaptation (`corners.adapt`): of the corner measure, or with --weights of a
detector trained before. Patch i depends on i and nothing else, so shards can be made anywhere and in any order.

A shard holds `image` (n, S, S) uint8, `count` (n,) labels per patch, and `label` (sum of count, 3): x, y, strength.
"""
import argparse
import functools
import multiprocessing
import sys

import cv2
import numpy as np

import corners
import data
import scenes

SIZE = 288
PHOTO_SHARE = 0.5
GREY = [(.114, .587, .299)] * 3 + [(1 / 3, 1 / 3, 1 / 3), (0, 0, 1), (0, 0, 1), (0, 1, 0)]  # BGR weights: luma, mean, red, green


@functools.lru_cache(maxsize=64)
def picture(path):
    return data.load_grey(path)


def crop(paths, rng, size=SIZE):
    """A random square of a random picture, from half to five times the patch's size, as a grey patch."""
    g = None
    area = None
    for _ in range(20):
        p = picture(paths[int(rng.integers(len(paths)))])
        h, w = p.shape[:2]
        least = min(h, w)
        side = int(np.clip(size * np.exp(rng.uniform(np.log(0.6), np.log(5))), size // 2, least))
        y, x = int(rng.integers(0, h - side + 1)), int(rng.integers(0, w - side + 1))
        area = p[y:y + side, x:x + side]
        area = cv2.resize(area, (size, size), interpolation=cv2.INTER_AREA if side >= size else cv2.INTER_CUBIC)
        if rng.random() < 0.5:
            area = area[:, ::-1]
        area = np.rot90(area, int(rng.integers(4)))
        g = np.clip(area.astype(np.float32) @ np.float32(GREY[int(rng.integers(len(GREY)))]), 0, 255)
        if g.std() > 9:
            break
    return g.astype(np.uint8)


def patch(seed, paths, share):
    rng = np.random.default_rng([7, seed])
    if paths and rng.random() < share:
        return crop(paths, rng), rng
    return scenes.scene(rng, SIZE)[0], rng


@functools.lru_cache(maxsize=1)
def measure(weights, device):
    """The corner measure of a round and the weakest response that counts."""
    if not weights:
        return corners.response, corners.FLOOR
    import detector
    return detector.score_map(weights, device), corners.SCORE_FLOOR


def one(seed, paths, share, views, weights, device):
    cv2.setNumThreads(1)
    g, rng = patch(seed, paths, share)
    return g, corners.adapt(g, rng, views, *measure(weights, device))


def save(path, results):
    np.savez(path, image=np.stack([g for g, _ in results]), count=np.array([len(p) for _, p in results], np.int32),
             label=np.concatenate([p for _, p in results]).astype(np.float32))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--data", help="folder of the manifest's pictures; without it only drawn scenes are used")
    a.add_argument("--out", required=True)
    a.add_argument("--from", dest="first", type=int, default=0)
    a.add_argument("--to", type=int, required=True)
    a.add_argument("--photos", type=float, default=PHOTO_SHARE, help="share of patches that are cut from pictures, with --data")
    a.add_argument("--views", type=int, default=20)
    a.add_argument("--weights", help="label by this detector in place of the corner measure")
    a.add_argument("--device", default="cpu")
    a.add_argument("--jobs", type=int, default=2)
    o = a.parse_args()
    paths = tuple(str(p) for p in data.pictures(o.data, "train")) if o.data else ()
    seeds = range(o.first, o.to)
    make = functools.partial(one, paths=paths, share=o.photos, views=o.views, weights=o.weights, device=o.device)
    if o.device != "cpu":
        results = [make(s) for s in seeds]
    else:
        with multiprocessing.get_context("spawn").Pool(o.jobs) as p:  # PyTorch's threads do not survive a fork
            results = p.map(make, seeds, chunksize=8)
    save(o.out, results)
    print(f"{o.out}: {len(results)} patches, {np.mean([len(p) for _, p in results]):.0f} labels each, "
          f"{np.mean([p[:, 2].sum() for _, p in results]):.0f} by strength", file=sys.stderr)


if __name__ == "__main__":
    main()

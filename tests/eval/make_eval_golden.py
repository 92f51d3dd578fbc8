"""Writes eval_golden.h: points, descriptors and a homography with the figures that train/metrics.py gives for them.

    python3 tests/eval/make_eval_golden.py > tests/eval/eval_golden.h      (needs numpy)

Descriptors are short integer vectors repeated to 256 elements and scaled to length 1 in float32, so both languages
make the same ones from a formula and none need to be stored.
"""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "train"))
import metrics as M  # noqa: E402

N, SIZE = 60, (640, 480)
H = np.array([[0.9, -0.25, 60.0], [0.22, 0.95, -35.0], [1e-4, -2e-4, 1.0]])


def descriptors(seeds, own=None):
    """One direction a seed; with `own`, point i is pulled away from it by `own` + i's own direction."""
    raw = lambda g: np.array([(g.next() >> 56) - 127.5 for _ in range(256)], np.float64)
    out = np.zeros((len(seeds), 256), np.float32)
    for i, s in enumerate(seeds):
        v = raw(M.SplitMix(int(s)))
        if own:
            v += 0.25 * (1 + i % 5) * raw(M.SplitMix(own + i))
        out[i] = (v / np.sqrt((v * v).sum())).astype(np.float32)
    return out


def main():
    g = M.SplitMix(2024)
    real = lambda: (g.next() >> 11) / 2.0 ** 53
    a = np.array([[20 + 600 * real(), 20 + 440 * real()] for _ in range(N)])
    b = M.warp(H, a) + np.array([[8 * real() - 4, 8 * real() - 4] for _ in range(N)])
    seeds_a, seeds_b = np.arange(N), np.arange(N)
    seeds_b[::7] = np.arange(1000, 1000 + len(seeds_b[::7]))  # no partner
    seeds_b[3], seeds_b[5] = 5, 3                              # wrong partners
    keep = M.inside(b, SIZE)
    b, seeds_b = b[keep], seeds_b[keep]
    d = np.maximum(2 - 2 * descriptors(seeds_a) @ descriptors(seeds_b, 5000).T, 0)
    rep, mle, _ = M.repeatability(a, b, H, SIZE)
    score, ap = M.matching(d, a, b, H, SIZE)
    m = M.mutual(d)
    estimate = M.estimate(a[m[:, 0]], b[m[:, 1]], SIZE)
    show = lambda v: ", ".join(f"{x:.17g}" for x in np.ravel(v))
    print("/* Made by tests/eval/make_eval_golden.py. */")
    print(f"#define GOLDEN_A {len(a)}\n#define GOLDEN_B {len(b)}")
    print(f"static const double golden_h[9] = {{{show(H)}}};")
    print(f"static const double golden_a[] = {{{show(a)}}};")
    print(f"static const double golden_b[] = {{{show(b)}}};")
    print(f"static const int golden_seed_a[] = {{{', '.join(map(str, seeds_a))}}};")
    print(f"static const int golden_seed_b[] = {{{', '.join(map(str, seeds_b))}}};")
    print(f"static const double golden_repeatability = {rep:.17g}, golden_error = {mle:.17g};")
    print(f"static const double golden_score = {score:.17g}, golden_precision = {ap:.17g};")
    print(f"static const int golden_mutual = {len(m)};")
    print(f"static const double golden_corner_error = {M.corner_error(estimate, H, SIZE):.17g};")
    values = np.array([real() for _ in range(24)])
    values[[4, 17]] = np.nan
    groups = np.arange(24) % 10 // 2 * 3 % 7  # five scenes of unlike sizes, in no order
    low, high = M.bootstrap(values, groups)
    c_number = lambda v: "NAN" if np.isnan(v) else f"{v:.17g}"
    print(f"static const double golden_values[24] = {{{', '.join(map(c_number, values))}}};")
    print(f"static const char *const golden_scenes[24] = {{{', '.join(f'{chr(34)}{g}{chr(34)}' for g in groups)}}};")
    print(f"static const double golden_low = {low:.17g}, golden_high = {high:.17g};")


if __name__ == "__main__":
    main()

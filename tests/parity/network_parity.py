"""Hold the library against transformers' SuperPointForKeypointDetection, loaded from the same file.

usage: network_parity.py [--weights FILE] [--engines reference,cpu] [--pictures N]

For each picture and random frame:
  - score and descriptor maps agree to 1e-5 (largest difference) and PCC >= 0.999999;
  - on the library's own score map, nms=hf gives the very same points as transformers' code, and the
    default rule the same as the contract stated in numpy;
  - end to end, transformers' keypoints are the library's (nms=hf, its border rule), where points may
    differ only if a float32 rounding explains it: a score within 2e-6 of the threshold or of a rival.
Exits with 1 where anything disagrees.
"""
import argparse
import os
import sys

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import SuperPointConfig, SuperPointForKeypointDetection
from transformers.models.superpoint.modeling_superpoint import simple_nms

from libsuperpoint import FLOAT32, Library, frame_of

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "../..")
RADIUS, THRESHOLD, BORDER = 4, 0.005, 4
ROUNDING = 2e-6


def pictures(count):
    """Grey planes of 640x480 and other sizes: the sample, scikit-image's pictures, crops, noise."""
    import skimage
    folder = os.path.join(os.path.dirname(skimage.__file__), "data")
    names = ["astronaut.png", "brick.png", "camera.png", "cell.png", "chelsea.png", "clock_motion.png", "coffee.png",
             "coins.png", "color.png", "grass.png", "gravel.png", "horse.png", "hubble_deep_field.jpg", "ihc.png",
             "moon.png", "motorcycle_left.png", "page.png", "rocket.jpg", "text.png"]
    paths = [os.path.join(TREE, "sample_data/bridge.jpg")] + [os.path.join(folder, n) for n in names]
    sizes = [(640, 480), (320, 240), (488, 376), (256, 256), (640, 480), (64, 48)]
    for i, path in enumerate(paths[:count]):
        image = Image.open(path).convert("RGB").resize(sizes[i % len(sizes)], Image.BILINEAR)
        yield os.path.basename(path), np.ascontiguousarray(np.asarray(image)[:, :, 0])
    random = np.random.default_rng(1)
    for width, height in ((8, 8), (8, 64), (72, 16), (136, 104), (320, 240)):
        yield f"noise {width}x{height}", random.integers(0, 256, (height, width), dtype=np.uint8)
    yield "black", np.zeros((48, 64), np.uint8)
    yield "white", np.full((48, 64), 255, np.uint8)


def dense(model, plane):
    """transformers' maps before suppression, from its own modules."""
    x = torch.from_numpy(plane).float()[None, None] / 255
    with torch.no_grad():
        encoded = model.encoder(x, return_dict=True)[0]
        d = model.keypoint_decoder
        logits = d.conv_score_b(torch.relu(d.conv_score_a(encoded)))
        s = torch.softmax(logits, 1)[:, :-1]
        _, _, h, w = s.shape
        s = s.permute(0, 2, 3, 1).reshape(1, h, w, 8, 8).permute(0, 1, 3, 2, 4).reshape(h * 8, w * 8)
        d = model.descriptor_decoder
        raw = d.conv_descriptor_b(torch.relu(d.conv_descriptor_a(encoded)))
        return s.numpy(), torch.nn.functional.normalize(raw, p=2, dim=1)[0].permute(1, 2, 0).numpy()


def pcc(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    if a.std() == 0 or b.std() == 0:
        return 1.0 if np.allclose(a, b, atol=1e-6) else 0.0
    return float(np.corrcoef(a, b)[0, 1])


def contract_points(scores, radius, threshold, border, limit):
    """The default rule, stated in numpy: (y, x) in order."""
    h, w = scores.shape
    padded = np.full((h + 2 * radius, w + 2 * radius), -np.inf, np.float32)
    padded[radius:radius + h, radius:radius + w] = scores
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * radius + 1, 2 * radius + 1))
    keep = (scores == windows.max((2, 3))) & (scores > np.float32(threshold))
    keep[:border] = keep[h - border:] = False
    keep[:, :border] = keep[:, w - border:] = False
    y, x = np.nonzero(keep)
    order = np.lexsort((x, y, -scores[y, x]))
    if limit >= 0:
        order = order[:limit]
    return np.stack([x[order], y[order]], 1)


def contract_descriptors(coarse, points):
    """Sampling, stated in numpy with double precision."""
    h, w, _ = coarse.shape
    p = (points - 3.5) / (np.array([8 * w, 8 * h]) - 4.5) * (np.array([w, h]) - 1)
    base = np.floor(p).astype(int)
    out = np.zeros((len(points), 256))
    for dx in (0, 1):
        for dy in (0, 1):
            cx, cy = base[:, 0] + dx, base[:, 1] + dy
            weight = (1 - np.abs(p[:, 0] - cx)) * (1 - np.abs(p[:, 1] - cy))
            inside = (cx >= 0) & (cy >= 0) & (cx < w) & (cy < h)
            out[inside] += weight[inside, None] * coarse[cy[inside], cx[inside]]
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)


def top_left_border(points):
    """transformers drops points at the top and left sides only: its height and width are 8 times too large."""
    return points[(points[:, 0] >= BORDER) & (points[:, 1] >= BORDER)]


def as_set(points):
    return {tuple(int(v) for v in p) for p in points}


def explained(points, scores):
    """Whether each point's survival hangs on a difference that float32 rounding can make."""
    h, w = scores.shape
    for x, y in points:
        window = scores[max(0, y - 2 * RADIUS):y + 2 * RADIUS + 1, max(0, x - 2 * RADIUS):x + 2 * RADIUS + 1].ravel()
        near_threshold = abs(scores[y, x] - THRESHOLD) < ROUNDING
        top = np.sort(window[window > THRESHOLD - ROUNDING])
        near_tie = len(top) > 1 and np.min(np.diff(top)) < ROUNDING
        if not (near_threshold or near_tie):
            return False
    return True


class Checker:
    def __init__(self):
        self.failures = 0

    def expect(self, ok, what):
        if not ok:
            self.failures += 1
            print("  FAILED:", what)


def check_frame(check, library, engine, model, name, plane):
    ours, ours_d = engine.run(plane)
    theirs, theirs_d = dense(model, plane)
    score_abs, desc_abs = float(np.abs(ours - theirs).max()), float(np.abs(ours_d - theirs_d).max())
    score_pcc, desc_pcc = pcc(ours, theirs), pcc(ours_d, theirs_d)
    check.expect(score_abs <= 1e-5 and desc_abs <= 1e-5, f"{name}: max abs {score_abs:.2e} {desc_abs:.2e}")
    check.expect(score_pcc >= 0.999999 and desc_pcc >= 0.999999, f"{name}: PCC {score_pcc:.8f} {desc_pcc:.8f}")

    frame = frame_of(plane)
    hf = library.params(nms=1, border=0, max_keypoints=-1, descriptor_dtype=FLOAT32)
    pixels, _, _, descriptors = library.extract(engine.maps, frame, hf)
    suppressed = simple_nms(torch.from_numpy(ours)[None], RADIUS)[0].numpy()
    y, x = np.nonzero(suppressed > np.float32(THRESHOLD))
    check.expect(as_set(pixels) == as_set(np.stack([x, y], 1)), f"{name}: nms=hf on the same map")

    default = library.params(max_keypoints=200)
    p, _, s, _ = library.extract(engine.maps, frame, default)
    expected = contract_points(ours, RADIUS, THRESHOLD, BORDER, 200)
    check.expect(np.array_equal(p, expected), f"{name}: default rule")
    check.expect(np.array_equal(s, ours[expected[:, 1], expected[:, 0]]), f"{name}: scores")
    sampled = float(np.abs(descriptors - contract_descriptors(ours_d, pixels.astype(float))).max()) if len(pixels) else 0
    check.expect(sampled <= 1e-5, f"{name}: sampling {sampled:.2e}")

    with torch.no_grad():
        out = model(torch.from_numpy(plane).float()[None, None].repeat(1, 3, 1, 1) / 255)
    h, w = plane.shape
    known = out.mask[0].bool()
    hf_points = np.rint(out.keypoints[0][known].numpy() * [w, h]).astype(int)
    mine, his = as_set(top_left_border(pixels.astype(int))), as_set(hf_points)
    odd = mine ^ his
    check.expect(explained(odd, theirs), f"{name}: {len(odd)} keypoints differ from transformers' without a rounding")
    by_point = {tuple(p): d for p, d in zip(hf_points.tolist(), out.descriptors[0][known].numpy())}
    common = [(d, by_point[tuple(p)]) for p, d in zip(pixels.tolist(), descriptors) if tuple(p) in by_point]
    worst = max((float(np.abs(a - b).max()) for a, b in common), default=0.0)
    check.expect(worst <= 1e-5, f"{name}: descriptors at keypoints {worst:.2e}")
    print(f"  {name:24} {w}x{h}: max abs {score_abs:.1e} {desc_abs:.1e}, {len(his)} points, {len(odd)} odd, "
          f"sampled {worst:.1e}", flush=True)
    return len(his), len(odd)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default=os.path.join(TREE, "weights/superpoint.safetensors"))
    parser.add_argument("--engines", default="cpu", help="comma-separated: reference, cpu, cpu:avx2, ...")
    parser.add_argument("--pictures", type=int, default=20)
    args = parser.parse_args()
    config = SuperPointConfig(keypoint_threshold=THRESHOLD, nms_radius=RADIUS, border_removal_distance=BORDER)
    model = SuperPointForKeypointDetection(config).eval()
    model.load_state_dict(load_file(args.weights))
    library, check = Library(), Checker()
    for spec in args.engines.split(","):
        name, _, level = spec.partition(":")
        print(f"engine {spec}, fp32")
        engine = library.engine(args.weights, engine=name, precision="fp32", level=level or None)
        points = odd = frames = 0
        for picture, plane in pictures(args.pictures):
            n, o = check_frame(check, library, engine, model, picture, plane)
            points, odd, frames = points + n, odd + o, frames + 1
        engine.close()
        print(f"engine {spec}: {frames} frames, {points} keypoints, {odd} differ by a rounding")
    print("FAILED" if check.failures else "passed")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Round the weights of the layers that run in int8, and write them beside the weights.

    python3 train/calibrate.py --data DIR [--weights FILE.safetensors]

--data is where `data.py fetch` put the manifest's pictures; some of those to train on are used, none of scikit-image's, since
bench/accuracy.py judges by them. FILE.int8 is written, which names the digest of the weights; lib/model/int8_weights.h has the format.

Layer after layer, on pictures and drawn scenes, each layer reading what the rounded ones before it give:

- The steps of an output channel's bytes are those of the least mean squared error; larger values are cut off.
- A channel that is never on has its place taken by a second byte of another one: the first counts steps 0...255, the
  second those above, and with twice as many of them they may be half as large. Channels where that gains most are taken.
- Weights are rounded one input after another, and what rounding one adds to the layer's output is taken from the inputs that
  are still to come, as far as they go together on the pictures (Frantar et al., GPTQ, arXiv:2210.17323).
- The bias takes what is left of the mean error.
"""
import argparse
import os

import cv2
import numpy as np
import torch
from safetensors.torch import load_file, save
from torch.nn.functional import conv2d, max_pool2d, pad

import data
import model
import scenes

LAYERS = [name for name, *_ in model.LAYERS[:model.BYTES + 1]]  # the first, whose outputs become bytes, and those in int8
SCENES = ("board", "bricks", "text", "boxes", "lines", "strokes")
PICTURES = 24  # at most, spread over the list: all of their maps are in memory at once
WIDTH, HEIGHT = 320, 240
POSITIONS = 1000  # of each picture and layer, drawn
STEPS = 255  # of a byte
DEAD = 1e-4  # of the layer's largest value: a channel below is never on
CUTS = np.exp(np.linspace(0, np.log(0.05), 24))  # where values may be cut off, as shares of the largest
DAMPING = 1e-3  # of the mean of the inputs' squares, added to each: for inputs that hardly vary


def planes(root):
    """Each picture whole and a part of it at twice the scale, and the scenes: [1, 1, HEIGHT, WIDTH], 0...1."""
    out = []
    entries = [e for e in data.manifest()["pictures"] if e["split"] == "train" and e["package"] != "scikit-image"]
    for entry in entries[::-(-len(entries) // PICTURES)]:
        red = data.load_grey(data.location(root, entry))[:, :, 2]
        double = cv2.resize(red, (2 * WIDTH, 2 * HEIGHT), interpolation=cv2.INTER_AREA)
        out += [cv2.resize(double, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA),
                double[HEIGHT // 2:, WIDTH // 2:][:HEIGHT, :WIDTH]]
    for i, kind in enumerate(SCENES):
        out.append(scenes.scene(np.random.default_rng([9, i]), WIDTH, kind)[0][:HEIGHT])
    return [torch.from_numpy(np.ascontiguousarray(p)).float()[None, None] / 255 for p in out]


def layer(x, weight, bias, index):
    x = torch.relu(conv2d(x, weight, bias, padding=1))
    return max_pool2d(x, 2) if model.LAYERS[index][5] else x


def positions(x, rng):
    return torch.from_numpy(rng.permutation(x.shape[2] * x.shape[3])[:POSITIONS])


def windows(x, at):
    """[n, channels * 9]: what a 3x3 kernel sees at these positions."""
    width, x = x.shape[3], pad(x, (1, 1, 1, 1))[0]
    y, x0 = at // width, at % width
    taps = [x[:, y + ky, x0 + kx] for ky in range(3) for kx in range(3)]
    return torch.stack(taps, 2).permute(1, 0, 2).flatten(1)


class Bytes:
    """How a layer's outputs become bytes: place p holds steps 255 * part[p]... of channel source[p], each of step[p]."""

    def __init__(self, source, part, step):
        self.source, self.part, self.step = source, part, step

    def __call__(self, x):
        """What the bytes stand for: summed over a channel's places, the channel as it is read."""
        shape = (1, -1, 1, 1)
        count = (x[:, self.source] / self.step.view(shape)).round() - STEPS * self.part.view(shape)
        return count.clamp(0, STEPS) * self.step.view(shape)


def best_step(values, parts):
    """Step and mean squared error of each row of `values` in `parts` bytes, where both are least."""
    largest = values.amax(1)
    least, step = torch.full_like(largest, np.inf), largest
    for cut in CUTS:
        s = largest * float(cut) / (STEPS * parts)
        rounded = (values / s[:, None]).round().clamp(0, STEPS * parts) * s[:, None]
        error = (rounded - values).square().mean(1)
        step, least = torch.where(error < least, s, step), torch.minimum(least, error)
    return step, least


def choose_bytes(values, reader, share):
    """`values` [channels, n] of a layer's outputs, `reader` the kernel of the next layer; `share` out places of dead channels."""
    channels = len(values)
    floor = max(float(values.max()) * DEAD, 1e-6)
    on = values.amax(1) > floor
    values[~on] = floor  # any step that is not zero
    noise = reader.square().sum((0, 2, 3))
    parts = torch.ones(channels, dtype=torch.long)
    step, error = best_step(values, 1)
    finer = best_step(values, 2)
    for _ in range(int((~on).sum()) if share else 0):
        gain = (error - finer[1]) * noise * on
        c = int(gain.argmax())
        parts[c] += 1
        step[c], error[c] = finer[0][c], finer[1][c]
        finer[0][c:c + 1], finer[1][c:c + 1] = best_step(values[c:c + 1], int(parts[c]) + 1)
    source, part, free = torch.arange(channels), torch.zeros(channels, dtype=torch.long), iter(torch.where(~on)[0])
    for c in range(channels):
        for k in range(1, int(parts[c])):
            p = next(free)
            source[p], part[p] = c, k
    return Bytes(source, part, step[source])


def round_weights(kernel, seen):
    """Whole numbers and their step for each row of `kernel` [out, in * 9], given the inputs that were seen [n, in * 9]."""
    step = kernel.abs().amax(1).clamp_min(1e-12).double() / 127
    squares = (seen.T @ seen / len(seen)).double()
    squares.diagonal().add_(DAMPING * squares.diagonal().mean())
    order = squares.diagonal().argsort(descending=True)
    spread = torch.linalg.cholesky(torch.linalg.inv(squares[order][:, order]), upper=True)
    left, rounded = kernel[:, order].double(), torch.zeros(kernel.shape, dtype=torch.int8)
    for i, place in enumerate(order):
        count = (left[:, i] / step).round().clamp(-127, 127)
        rounded[:, place] = count.to(torch.int8)
        error = (left[:, i] - count * step) / spread[i, i]
        left[:, i + 1:] -= error[:, None] * spread[i, i + 1:]
    return rounded, step.float()


def calibrate(tensors, pictures):
    """The tensors of the file."""
    rng, out = np.random.default_rng(1), {}
    exact, read, code = list(pictures), list(pictures), None  # what the network and its rounding give so far
    for index, name in enumerate(LAYERS):
        kernel, bias = tensors[name + ".weight"], tensors[name + ".bias"]
        if index:
            at = [positions(x, rng) for x in read]
            seen = torch.cat([windows(x, p) for x, p in zip(read, at)])
            wanted = torch.cat([windows(x, p) @ kernel.flatten(1).T for x, p in zip(exact, at)])
            unit = code.step.repeat_interleave(9)
            counts, scale = round_weights(kernel[:, code.source].flatten(1) * unit, seen / unit)
            rounded = counts * scale[:, None] / unit
            given = seen @ rounded.T
            bias_read = bias + (wanted - given).mean(0)
            print(f"{name}: error {float((wanted - given - (wanted - given).mean(0)).square().mean() / wanted.square().mean()):.2e} "
                  "of the squares before ReLU")
            weight_read = rounded.view(len(kernel), -1, 3, 3)
        else:
            weight_read, bias_read = kernel, bias
        exact = [layer(x, kernel, bias, index) for x in exact]
        read = [layer(x, weight_read, bias_read, index) for x in read]
        source, part = torch.arange(len(kernel)), torch.zeros(len(kernel))
        if name != LAYERS[-1]:
            values = torch.cat([x[0].flatten(1)[:, positions(x, rng)] for x in exact], 1)
            largest = torch.stack([x[0].amax((1, 2)) for x in exact]).amax(0)  # so that a channel that is seldom on counts
            values = torch.cat([values, largest[:, None]], 1)
            # layer 0 runs on the checkpoint's own weights, so that none of its places can be given away
            code = choose_bytes(values, tensors[LAYERS[index + 1] + ".weight"], share=index > 0)
            read = [code(x) for x in read]
            out[name + ".step"] = code.step
            source, part = code.source, code.part
        if index:
            out[name + ".weight"] = counts.view(len(kernel), -1, 3, 3)[source]
            out[name + ".scale"] = scale[source]
            out[name + ".bias"] = bias_read[source] - (STEPS * part * code.step if name != LAYERS[-1] else 0)
    return {key: value.contiguous() for key, value in out.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--weights", default=os.path.join(os.path.dirname(__file__), "../weights/superpoint.safetensors"))
    p.add_argument("--data", required=True, help="folder of the manifest's pictures")
    args = p.parse_args()
    torch.set_grad_enabled(False)
    tensors = {k: v.float() for k, v in load_file(args.weights).items()}
    out = calibrate(tensors, planes(args.data))
    path = os.path.splitext(args.weights)[0] + ".int8"
    with open(path + ".part", "wb") as f:
        f.write(save(out, {"format": "superpoint int8 1", "weights": data.sha256(args.weights)}))
    os.replace(path + ".part", path)
    print(path)


if __name__ == "__main__":
    main()

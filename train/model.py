"""The network in PyTorch: training form (batch norm where it speeds learning) and shipping form (plain convolutions).

The layer table is the one of `lib/model`: names of the transformers checkpoint, 1,300,865 parameters. Batch norm
stands between a convolution and its ReLU, so at the end it folds into the convolution exactly.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS = (  # tensor name, input channels, output channels, kernel, batch norm while training, pool after
    ("encoder.conv_blocks.0.conv_a", 1, 64, 3, False, False), ("encoder.conv_blocks.0.conv_b", 64, 64, 3, False, True),
    ("encoder.conv_blocks.1.conv_a", 64, 64, 3, True, False), ("encoder.conv_blocks.1.conv_b", 64, 64, 3, True, True),
    ("encoder.conv_blocks.2.conv_a", 64, 128, 3, True, False), ("encoder.conv_blocks.2.conv_b", 128, 128, 3, True, True),
    ("encoder.conv_blocks.3.conv_a", 128, 128, 3, True, False), ("encoder.conv_blocks.3.conv_b", 128, 128, 3, True, False),
    ("keypoint_decoder.conv_score_a", 128, 256, 3, True, False), ("keypoint_decoder.conv_score_b", 256, 65, 1, False, False),
    ("descriptor_decoder.conv_descriptor_a", 128, 256, 3, True, False),
    ("descriptor_decoder.conv_descriptor_b", 256, 256, 1, False, False))
PARAMETERS = 1300865
CELL = 8
BYTES = 5  # layers from the front whose outputs are bytes in int8


def as_bytes(x):
    """What a layer's outputs are in int8: 255 steps of each channel's largest value. The gradient passes as it is."""
    with torch.no_grad():
        step = (x.amax((0, 2, 3), keepdim=True) / 255).clamp(min=1e-6)
        error = (x / step).round_() * step - x
    return x + error


class Net(nn.Module):
    """`forward(x)`: x (n, 1, H, W) in [0, 1]; returns score logits (n, 65, H/8, W/8) and raw descriptors (n, 256, …)."""

    def __init__(self, norm=True):
        super().__init__()
        self.conv, self.norm = nn.ModuleList(), nn.ModuleList()
        for _, i, o, k, bn, _ in LAYERS:
            self.conv.append(nn.Conv2d(i, o, k, padding=k // 2))
            self.norm.append(nn.BatchNorm2d(o, momentum=0.05) if norm and bn else nn.Identity())
        for c in self.conv:
            nn.init.kaiming_normal_(c.weight, nonlinearity="relu")
            nn.init.zeros_(c.bias)
        nn.init.normal_(self.conv[9].weight, std=0.02)
        nn.init.normal_(self.conv[11].weight, std=0.05)
        with torch.no_grad():
            self.conv[9].bias[64] = 5.0  # most cells hold no corner: start from there

    def layer(self, i, x):
        x = self.norm[i](self.conv[i](x))
        if LAYERS[i][5]:  # ReLU and maximum commute; pooling first leaves a quarter of the ReLU's work
            x = F.max_pool2d(x, 2)
        return F.relu(x, inplace=True)

    def forward(self, x, rounded=0):
        """`rounded`: so many pictures at the batch's end see the rounding of the layers that read bytes in int8."""
        for i in range(8):
            x = self.layer(i, x)
            if rounded and i < BYTES:
                x = torch.cat([x[:-rounded], as_bytes(x[-rounded:])])
        return self.conv[9](self.layer(8, x)), self.conv[11](self.layer(10, x))


@torch.no_grad()
def shipping_weights(state):
    """Folds batch norm and names the tensors as shipped: dict of float32 tensors from a `Net` state dict."""
    out = {}
    for i, (name, *_rest) in enumerate(LAYERS):
        w, b = state[f"conv.{i}.weight"].double(), state[f"conv.{i}.bias"].double()
        if f"norm.{i}.weight" in state:
            s = state[f"norm.{i}.weight"].double() / (state[f"norm.{i}.running_var"].double() + 1e-5).sqrt()
            w = w * s[:, None, None, None]
            b = (b - state[f"norm.{i}.running_mean"].double()) * s + state[f"norm.{i}.bias"].double()
        out[name + ".weight"], out[name + ".bias"] = w.float().contiguous(), b.float().contiguous()
    assert sum(t.numel() for t in out.values()) == PARAMETERS
    return out


def calibration_shift(path):
    """What export.py added to the dustbin's bias of a safetensors file."""
    from safetensors import safe_open
    with safe_open(str(path), "pt") as f:
        text = (f.metadata() or {}).get("calibration", "dustbin bias 0:")
    return float(text.split(":")[0].split()[-1])


def training_state(path):
    """The state of a `Net` that a safetensors file was exported from: batch norm is folded and does nothing, the calibration is undone."""
    state = {**Net().state_dict(), **load_shipping(path).state_dict()}
    state["conv.9.bias"][64] -= calibration_shift(path)
    return state


def load_shipping(path):
    """A `Net` without batch norm from a safetensors file, in evaluation mode."""
    from safetensors.torch import load_file
    tensors = load_file(str(path))
    net = Net(norm=False)
    net.load_state_dict({f"conv.{i}.{part}": tensors[f"{name}.{part}"].float()
                         for i, (name, *_rest) in enumerate(LAYERS) for part in ("weight", "bias")})
    return net.eval()


def scores(logits):
    """Softmax over 65, dustbin dropped, cells unfolded: (n, H, W)."""
    return F.pixel_shuffle(logits.float().softmax(1)[:, :64], CELL)[:, 0]


def log_scores(logits):
    """Their logarithms, which training looks at: (n, 1, H, W)."""
    return F.pixel_shuffle(logits.float().log_softmax(1)[:, :64], CELL)


def mean_weights(checkpoints):
    """The mean of the averaged weights of loaded checkpoints, in float64."""
    return {k: sum(c["average"][k].double() for c in checkpoints) / len(checkpoints) for k in checkpoints[0]["average"]}


def save_shipping(tensors, path, metadata, dtype=np.float16):
    from safetensors.numpy import save_file
    save_file({k: v.cpu().numpy().astype(dtype) for k, v in tensors.items()}, str(path),
              metadata={k: str(v) for k, v in metadata.items()})

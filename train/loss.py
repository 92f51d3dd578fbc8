"""Views of a patch, the targets that go with them, and the two losses. Everything batched, on any device."""
import math

import torch
import torch.nn.functional as F

from model import CELL

SPREAD = 0.5   # sigma (px) of a label's footprint
HEIGHT = 0.23  # score of a label of strength 1: with it the four pixels of a half-way label still sum below 1
NEAR = 8.0     # px: other points closer than this are neither matches nor counter-examples
CORNER_WEIGHT, PLACE_WEIGHT = 4.0, 4.0  # see detector_loss
GROUP = 8      # pairs whose points are compared with one another
POINTS = 160   # labels per view that learn descriptors; half as many of the detector's own points join them
JITTER = 0.7   # px, sigma: descriptors are read at the detector's points, which are that far off the true places
# Steps of JPEG's luminance: the example table of ITU-T T.81, K.1
LUMINANCE = torch.tensor([[16, 11, 10, 16, 24, 40, 51, 61], [12, 12, 14, 19, 26, 58, 60, 55], [14, 13, 16, 24, 40, 57, 69, 56],
                          [14, 17, 22, 29, 51, 87, 80, 62], [18, 22, 37, 56, 68, 109, 103, 77], [24, 35, 55, 64, 81, 104, 113, 92],
                          [49, 64, 78, 87, 103, 121, 120, 101], [72, 92, 95, 98, 112, 100, 103, 99]]).float()


def apply(h, p):
    q = torch.cat([p, torch.ones_like(p[..., :1])], -1) @ h.transpose(-1, -2)
    w = q[..., 2:]
    return q[..., :2] / torch.where(w.abs() < 1e-6, torch.full_like(w, 1e-6), w)


def homography(src, dst):
    """Batched homography through four point pairs, (n, 4, 2) each."""
    n = src.shape[0]
    x, y, u, v = src[..., 0], src[..., 1], dst[..., 0], dst[..., 1]
    o, z = torch.ones_like(x), torch.zeros_like(x)
    a = torch.cat([torch.stack([x, y, o, z, z, z, -u * x, -u * y], -1), torch.stack([z, z, z, x, y, o, -v * x, -v * y], -1)], 1)
    h = torch.linalg.solve(a.double(), torch.cat([u, v], 1).double()[..., None])[..., 0]
    return torch.cat([h, torch.ones(n, 1, dtype=h.dtype, device=h.device)], 1).view(n, 3, 3).float()


def views(n, size, patch, strength, gen, device):
    """Random homographies from view pixels (size) to patch pixels (patch): (n, 3, 3)."""
    r = lambda *s: torch.rand(*s, generator=gen, device=device)
    c = torch.tensor([[-1., -1], [1, -1], [1, 1], [-1, 1]], device=device)[None] * ((size - 1) / 2)
    q = c + (r(n, 4, 2) * 2 - 1) * size * 0.2 * strength
    s = torch.exp((r(n, 1, 1) * 2 - 1) * math.log(1 + 0.8 * strength) + 0.1)
    a = (r(n, 1) * 2 - 1) * (math.pi / 4) * strength
    a = a + (r(n, 1) < 0.15 * strength) * (r(n, 1) * 2 - 1) * math.pi
    rot = torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()], -1).view(n, 2, 2)
    q = (q * s) @ rot.transpose(1, 2)
    slack = (patch / 2 - q.abs().amax(1)).clamp(min=0)
    q = q + ((r(n, 2) * 2 - 1) * slack)[:, None] + (patch - 1) / 2
    return homography(c.expand(n, 4, 2) + (size - 1) / 2, q)


def warp(image, h, size):
    """Samples (n, c, S, S) patches at the views' pixels: (n, c, size, size), and where a view lies inside its patch."""
    s = image.shape[-1]
    y, x = torch.meshgrid(torch.arange(size, device=image.device), torch.arange(size, device=image.device), indexing="ij")
    grid = torch.stack([x, y], -1).view(1, -1, 2).float().expand(h.shape[0], -1, 2)
    g = apply(h, grid).view(-1, size, size, 2) / (s - 1) * 2 - 1
    return F.grid_sample(image, g, align_corners=True, padding_mode="reflection"), (g.abs() <= 1).all(-1)


def relight(x, gen):
    """Contrast, brightness, gamma, shade, blur (also of motion), noise, 8 bits and JPEG, each view on its own."""
    n, size, device = x.shape[0], x.shape[-1], x.device
    r = lambda a, b, *s: torch.rand(n, 1, 1, 1, generator=gen, device=device) * (b - a) + a
    x = (x - 0.5) * r(0.5, 1.4) + 0.5 + r(-0.2, 0.2)
    x = x.clamp(1e-4, 1) ** torch.exp(r(-0.5, 0.5))
    shade = F.interpolate(torch.rand(n, 1, 4, 4, generator=gen, device=device), size=(size, size), mode="bicubic", align_corners=True)
    x = x * (1 - r(0, 0.6) * (r(0, 1) < 0.35) * (shade - 0.2).clamp(0, 1))
    t = torch.arange(-3, 4, device=device).float()
    sigma = r(0.01, 1.1) * (r(0, 1) < 0.4) + 1e-3                      # defocus: a separable Gaussian
    g = torch.exp(-0.5 * (t / sigma.view(n, 1)) ** 2)
    g = g / g.sum(1, keepdim=True)
    length = (r(0, 3.2) * (r(0, 1) < 0.12)).view(n, 1)                 # motion along one axis: a box
    box = (length + 0.5 - t.abs()).clamp(0, 1)
    box = box / box.sum(1, keepdim=True)
    across = (r(0, 1) < 0.5).view(n, 1)
    delta = (t == 0).float()[None]
    kx = conv7(g, torch.where(across, box, delta))
    ky = conv7(g, torch.where(across, delta, box))
    x = F.conv2d(F.pad(x, (6, 6, 6, 6), "reflect").view(1, n, size + 12, size + 12), kx.view(n, 1, 1, 13), groups=n)
    x = F.conv2d(x, ky.view(n, 1, 13, 1), groups=n).view(n, 1, size, size)
    x = x + torch.randn(x.shape, generator=gen, device=device) * r(0, 0.045)
    x = eight_bits(x)
    coded = eight_bits(jpeg(x, r(40, 95).view(n)))
    return torch.where(r(0, 1) < 0.2, coded, x)


def eight_bits(x):
    return (x.clamp(0, 1) * 255).round() / 255


def jpeg(x, quality):
    """What JPEG's luminance loses at `quality` (n,), 1 to 100: blocks of 8x8, their cosine transform rounded to steps.

    The table's steps are scaled as the Independent JPEG Group's library does.
    """
    n, size = x.shape[0], x.shape[-1]
    k = torch.arange(8, device=x.device).float()
    basis = torch.cos((2 * k + 1) * k[:, None] * math.pi / 16) / 2
    basis[0] /= math.sqrt(2)
    scale = torch.where(quality < 50, 5000 / quality, 200 - 2 * quality)
    step = ((LUMINANCE.to(x.device) * scale.view(n, 1, 1) + 50) / 100).floor().clamp(1, 255)[:, None, None]
    blocks = (x.view(n, size // 8, 8, size // 8, 8) * 255 - 128).transpose(2, 3)
    waves = ((basis @ blocks @ basis.t()) / step).round() * step
    return ((basis.t() @ waves @ basis).transpose(2, 3).reshape(n, 1, size, size) + 128) / 255


def conv7(a, b):
    """Row-wise full convolution of two (n, 7) kernels: (n, 13)."""
    n = a.shape[0]
    return F.conv1d(a.view(1, n, 7), b.flip(1).view(n, 1, 7), padding=6, groups=n).view(n, 13)


def targets(labels, h, inside, size):
    """Soft 65-way targets of each cell from padded labels (n, m, 3) in patch pixels (strength 0: padding).

    A label of strength s puts s * HEIGHT on its nearest pixel and exp(-(d^2 - dmin^2) / 2 SPREAD^2) of that on the
    pixels around: the peak's height does not depend on where between the pixels the corner lies.
    Returns targets (n, cells, 65), cell mask (n, cells), label positions in the view (n, m, 2) and which are inside.
    """
    n, m, _ = labels.shape
    p = apply(torch.linalg.inv(h), labels[..., :2])
    ok = (labels[..., 2] > 0) & (p >= 0).all(-1) & (p <= size - 1).all(-1)
    base = p.round()
    dmin = ((p - base) ** 2).sum(-1)
    flat = torch.zeros(n, (size + 4) * (size + 4), device=p.device)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            q = base + torch.tensor([dx, dy], device=p.device, dtype=p.dtype)
            w = torch.exp(-(((q - p) ** 2).sum(-1) - dmin) / (2 * SPREAD ** 2)) * labels[..., 2] * HEIGHT * ok
            at = torch.where(ok, (q[..., 1] + 2) * (size + 4) + q[..., 0] + 2, torch.zeros_like(dmin)).long()
            flat.scatter_add_(1, at, w)
    t = flat.view(n, size + 4, size + 4)[:, 2:-2, 2:-2]
    t = F.pixel_unshuffle(t[:, None], CELL).flatten(2).transpose(1, 2)
    total = t.sum(-1, keepdim=True)
    t = t / total.clamp(min=0.98) * 0.98
    t = torch.cat([t, 1 - t.sum(-1, keepdim=True)], -1)
    mask = F.avg_pool2d(inside.float()[:, None], CELL).flatten(1) > 0.99
    return t, mask, p, ok


def detector_loss(logits, target, mask):
    """Cross-entropy less the target's own entropy (so 0 is perfect), averaged over valid cells.

    Four cells of five hold no corner: the others weigh more, by the mass that their target puts on pixels. Where in
    its cell a corner lies is learnt last and decides the localisation error: that part of the divergence, which the
    mass on pixels scales down, counts PLACE_WEIGHT times more.
    """
    lg = logits.float().flatten(2).transpose(1, 2)[mask]
    t = target[mask]
    kl = (t * (t.clamp(min=1e-9).log() - lg.log_softmax(-1))).sum(-1)
    mass = t[:, :64].sum(-1)
    inner = t[:, :64] / mass.clamp(min=1e-6)[:, None]
    place = (inner * (inner.clamp(min=1e-9).log() - lg[:, :64].log_softmax(-1))).sum(-1) * mass
    return (kl * (1 + CORNER_WEIGHT * (1 - t[:, 64])) + PLACE_WEIGHT * place).mean()


def sample(desc, points):
    """Descriptors (n, 256, h, w) at points (n, m, 2) of the view, by the rule of inference: (n, m, 256), unit length."""
    side = desc.shape[-1]
    g = ((points - 3.5) / (CELL * side - 4.5) * 2 - 1)[:, :, None]
    return F.normalize(F.grid_sample(desc.float(), g, align_corners=True)[..., 0].transpose(1, 2), dim=-1)


def descriptor_loss(da, db, pa, qa, ok, log_scale):
    """Symmetric cross-entropy of matching all points of the batch: pa (n, m, 2) in view a is qa in view b.

    Counter-examples are the other points of the same pair (but those closer than NEAR) and of the other pairs,
    GROUP pairs at a time.
    Returns the loss and the share of points whose nearest neighbour within the pair is right.
    """
    n = pa.shape[0]
    if n > GROUP:  # the table of similarities grows with the square of the points
        parts = [descriptor_loss(*(t[i:i + GROUP] for t in (da, db, pa, qa, ok)), log_scale) for i in range(0, n, GROUP)]
        return sum(p[0] for p in parts) / len(parts), sum(p[1] for p in parts) / len(parts)
    if not ok.any():  # no point lies in both views: nothing to learn, but the gradients must exist for the workers' sum
        return (da.sum() + db.sum() + log_scale) * 0, torch.zeros((), device=da.device)
    m = pa.shape[1]
    a, b = sample(da, pa), sample(db, qa)
    pair = torch.arange(n, device=pa.device)[:, None].expand(n, m)[ok]
    xa, xb, pp, qq = a[ok], b[ok], pa[ok], qa[ok]
    same = pair[:, None] == pair[None]
    near = same & ((torch.cdist(pp, pp) < NEAR) | (torch.cdist(qq, qq) < NEAR))
    near.fill_diagonal_(False)
    sim = (xa @ xb.t() * log_scale.exp()).masked_fill(near, -1e4)
    y = torch.arange(len(xa), device=pa.device)
    loss = 0.5 * (F.cross_entropy(sim, y) + F.cross_entropy(sim.t(), y))
    with torch.no_grad():
        hit = (sim.masked_fill(~same, -1e4).argmax(1) == y).float().mean()
    return loss, hit


def correspondences(p, ok, strength, own, h12, inside_a, inside_b, gen):
    """Points of view a (labels first, then the detector's own, (n, m, 2)), about their places in b, and which lie well inside both."""
    n, size, device = p.shape[0], inside_a.shape[-1], p.device
    rank = torch.where(ok, strength + 0.5 * torch.rand(strength.shape, generator=gen, device=device), torch.zeros_like(strength))
    k = rank.topk(min(POINTS, rank.shape[1]), dim=1).indices
    lp = torch.gather(p, 1, k[..., None].expand(-1, -1, 2))
    lo = torch.gather(ok, 1, k)
    pa = torch.cat([lp, own], 1)
    good = torch.cat([lo, torch.ones(own.shape[:2], dtype=torch.bool, device=device)], 1)
    qa = apply(h12, pa)
    qa = qa + torch.randn(qa.shape, generator=gen, device=device) * JITTER
    for pts, inside in ((pa, inside_a), (qa, inside_b)):
        good = good & (pts >= 6).all(-1) & (pts <= size - 7).all(-1)
        i = pts.round().clamp(0, size - 1).long()
        good = good & torch.gather(inside.flatten(1), 1, i[..., 1] * size + i[..., 0])
    return pa, qa.clamp(-1e4, 1e4), good

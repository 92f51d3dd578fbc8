"""What the evaluation counts, as a loss: of the points that a detector would choose, how many are found again and matched.

Repeatability and matching score count the K strongest peaks. Whether a peak is among them is a step of its score; here it is a sigmoid
about the K-th score, so that a score learns whether its point is worth a place. Descriptors are taken as they are.
"""

import torch

from agreement import peaks
from loss import apply, sample

FOUND = 3.0         # px: the evaluation's
SOFTNESS = 0.5      # of log scores about the K-th one: a factor of 1.6 in score changes a membership from .5 to .73
SHARPNESS = 40.0    # of similarities when the nearest descriptor is chosen
BORDER = 4          # px: no points there
REPEATED = (4, 256)  # suppression radius and pixels a point (300 of 320x240): how repeatability counts
MATCHED = (8, 307)   # and how the matching score does (1000 of 640x480)


def candidates(scores, radius, count):
    """Twice `count` peaks of log scores (n, 1, S, S): positions (n, m, 2), their scores, their memberships of the `count` strongest."""
    inner = torch.full_like(scores, -1e4)
    inner[..., BORDER:-BORDER, BORDER:-BORDER] = scores.detach()[..., BORDER:-BORDER, BORDER:-BORDER]
    p = peaks(inner, 2 * count, radius)
    s = torch.gather(scores.flatten(1), 1, (p[..., 1] * scores.shape[-1] + p[..., 0]).long())
    limit = (s[:, count - 1] + s[:, count]).detach()[:, None] / 2
    return p, s, torch.sigmoid((s - limit) / SOFTNESS)


def lost(pa, ma, pb, mb, h12, inside_a, inside_b, nearest=None):
    """Share of a's chosen points in the shared view (n,) that b did not choose, or, given `nearest` (n, m, m), did not match."""
    q = apply(h12, pa)
    shared = at(inside_a, pa) & at(inside_b, q)
    near = (torch.cdist(q, pb) <= FOUND).float()
    right = 1 - (1 - near * mb[:, None]).clamp(min=1e-3).log().sum(2).exp() if nearest is None else (near * nearest).sum(2)
    weight = ma * shared
    return 1 - (weight * right).sum(1) / weight.sum(1).clamp(min=1)


def at(inside, p):
    """Values of masks (n, S, S) at points (n, m, 2), false beyond them."""
    size = inside.shape[-1]
    i = p.round().clamp(0, size - 1).long()
    return torch.gather(inside.flatten(1), 1, i[..., 1] * size + i[..., 0]) & (p >= 0).all(-1) & (p <= size - 1).all(-1)


def selection_loss(la, lb, da, db, h12, inside_a, inside_b):
    """(repeated, matched), (n,) each: shares of chosen points lost, of log scores (n, 1, S, S) and raw descriptors of two views.

    h12 maps a's pixels to b's; inside (n, S, S) says which hold a picture. Gradients reach the scores alone.
    """
    area, back = la.shape[-1] ** 2, torch.linalg.inv(h12)
    radius, pixels = REPEATED
    (pa, _, ma), (pb, _, mb) = (candidates(s, radius, area // pixels) for s in (la, lb))
    repeated = (lost(pa, ma, pb, mb, h12, inside_a, inside_b) + lost(pb, mb, pa, ma, back, inside_b, inside_a)) / 2
    radius, pixels = MATCHED
    (pa, _, ma), (pb, _, mb) = (candidates(s, radius, area // pixels) for s in (la, lb))
    with torch.no_grad():
        alike = SHARPNESS * sample(da, pa) @ sample(db, pb).transpose(1, 2)
    to_b = (alike + mb.clamp(min=1e-6).log()[:, None]).softmax(2)
    to_a = (alike.transpose(1, 2) + ma.clamp(min=1e-6).log()[:, None]).softmax(2)
    matched = (lost(pa, ma, pb, mb, h12, inside_a, inside_b, to_b) + lost(pb, mb, pa, ma, back, inside_b, inside_a, to_a)) / 2
    return repeated, matched


def as_calibrated(logits, shift):
    """Logits (n, 65, h, w) as export.py's calibration will leave them: the dustbin's `shift` higher."""
    return torch.cat([logits[:, :64], logits[:, 64:] + shift], 1)

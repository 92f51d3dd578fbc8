"""Two views of a thing choose the same points, where no label tells which: a loss that needs no labels.

Labels end where corners do. On blank areas a detector that learnt from labels alone ranks pixels by noise of its own, and when more
points are asked for than there are corners, they repeat badly and cannot be matched.
"""
import torch
import torch.nn.functional as F

from loss import warp

WINDOW = 16  # px: side of the windows in which a point is chosen; they overlap by half
FEW = 8      # windows in both views; with fewer their order says nothing


def about(windows):
    """Logarithm of the sum of the scores of a pixel and of the eight around it, within each window: (n, WINDOW^2, windows)."""
    n, _, count = windows.shape
    square = windows.transpose(1, 2).reshape(n * count, 1, WINDOW, WINDOW).exp()
    return (F.avg_pool2d(square, 3, 1, 1) * 9).clamp(min=1e-30).log().view(n, count, -1).transpose(1, 2)


def agreement_loss(la, lb, h12, inside_a, inside_b, offset=(0, 0)):
    """(choice, order) of log scores (n, 1, S, S) of two views; h12 maps a's pixels to b's, inside (n, S, S) says which hold a picture.

    choice: in each window the scores of either view, taken as a distribution, choose a pixel; the mean of -log of the
    probability that the two lie at most a pixel apart, in x and in y. It is small where both are sure and agree.
    order: 1 - the correlation between the views of the windows' totals (log), so that the same windows come first.
    `offset` (y, x), less than half a window, moves the windows: at fixed places their edges would be learnt.
    """
    carried, within = warp(torch.cat([lb, inside_b[:, None].float()], 1), h12, la.shape[-1])
    lb, seen = carried[:, :1], within & (carried[:, 1] > 0.99)
    cut = lambda t: F.unfold(t[..., offset[0]:, offset[1]:], WINDOW, stride=WINDOW // 2)
    whole = (cut((seen & inside_a).float()[:, None]).amin(1) > 0).float()
    count = whole.sum(1)
    wa, wb = cut(la), cut(lb)
    total_a, total_b = wa.logsumexp(1), wb.logsumexp(1)
    choice = -(wa - total_a[:, None] + about(wb - total_b[:, None])).logsumexp(1)
    centred = lambda t: (t - (t * whole).sum(1, keepdim=True) / count.clamp(min=1)[:, None]) * whole
    ca, cb = centred(total_a), centred(total_b)
    correlation = (ca * cb).sum(1) / (ca.square().sum(1) * cb.square().sum(1) + 1e-3).sqrt()
    enough = (count > FEW).float()
    return (choice * whole).sum() / whole.sum().clamp(min=1), ((1 - correlation) * enough).sum() / enough.sum().clamp(min=1)


@torch.no_grad()
def peaks(scores, count, radius=4):
    """The `count` strongest maxima within `radius` pixels of log scores (n, 1, S, S): positions (n, count, 2)."""
    size = scores.shape[-1]
    above = scores - scores.amin() + 1  # the others count as 0
    top = ((F.max_pool2d(scores, 2 * radius + 1, 1, radius) == scores) * above).flatten(1).topk(count, dim=1).indices
    return torch.stack([top % size, top.div(size, rounding_mode="floor")], -1).float()

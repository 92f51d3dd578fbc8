"""Tables and plots of the quality report, from the files that the evaluation left.

    python3 train/report.py --out weights/ --log run/log.jsonl --rows NAME=FILE [NAME=FILE …] [--sweep NAME=FILE …]

FILE is what `evaluate.py --json` (then NAME picks its method, or `NAME:method`) or `superpoint eval --json` wrote.
Writes OUT/report-tables.md and OUT/plots/*.svg; the words around them are written by hand in OUT/REPORT.md.
"""
import argparse
import json
import pathlib

import numpy as np

import evaluate

COLOURS = ("#1f6fb4", "#d1495b", "#3a7d44", "#8d5a97", "#e08e1b", "#4a4a4a", "#009e9e")
SIGNATURE = {"rotation": ("rotation, degrees", list(range(0, 181, 15))), "scale": ("scale", [0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0]),
             "blur": ("blur, sigma px", [0.5, 1, 1.5, 2, 3]), "noise": ("noise, sigma of 255", [4, 8, 16, 24, 32]),
             "jpeg": ("JPEG quality", [90, 70, 50, 30, 15])}


def rows(spec):
    """NAME=FILE or NAME:method=FILE -> (name, rows)."""
    name, path = spec.split("=", 1)
    name, _, method = name.partition(":")
    doc = json.loads(pathlib.Path(path).read_text())
    found = doc["pairs"] if "pairs" in doc else doc[method or name]["pairs"]
    for r in found:  # JSON has no infinity: a pair without an estimate carries null
        for k, v in r.items():
            if v is None:
                r[k] = float("inf") if k == "corner_error" else float("nan")
    return name, found


def plot(path, title, x_label, y_label, lines, x_names=None, y_range=None, log_x=False):
    """A small SVG: `lines` maps a name to (x, y) sequences."""
    w, h, left, right, top, bottom = 620, 340, 56, 150, 34, 46
    xs = np.concatenate([np.asarray(x, float) for x, _ in lines.values()])
    ys = np.concatenate([np.asarray(y, float) for _, y in lines.values()])
    f = np.log if log_x else (lambda v: np.asarray(v, float))
    x0, x1 = float(f(xs.min())), float(f(xs.max()))
    y0, y1 = y_range or (0.0, float(np.nanmax(ys)) * 1.05)
    px = lambda v: left + (f(v) - x0) / max(x1 - x0, 1e-9) * (w - left - right)
    py = lambda v: h - bottom - (v - y0) / max(y1 - y0, 1e-9) * (h - top - bottom)
    s = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" font-family="sans-serif" font-size="12">',
         f'<rect width="{w}" height="{h}" fill="#ffffff"/><text x="{left}" y="20" font-size="14">{title}</text>']
    for k in range(6):
        v = y0 + (y1 - y0) * k / 5
        s.append(f'<line x1="{left}" x2="{w - right}" y1="{py(v):.1f}" y2="{py(v):.1f}" stroke="#dddddd"/>'
                 f'<text x="{left - 6}" y="{py(v) + 4:.1f}" text-anchor="end">{v:.2g}</text>')
    ticks = x_names or list(np.linspace(xs.min(), xs.max(), 6))
    for v in ticks:
        s.append(f'<text x="{float(px(v)):.1f}" y="{h - bottom + 16}" text-anchor="middle">{v:g}</text>')
    s.append(f'<text x="{(left + w - right) / 2}" y="{h - 8}" text-anchor="middle">{x_label}</text>'
             f'<text x="14" y="{(top + h - bottom) / 2}" text-anchor="middle" transform="rotate(-90 14 {(top + h - bottom) / 2})">{y_label}</text>')
    for i, (name, (x, y)) in enumerate(lines.items()):
        c = COLOURS[i % len(COLOURS)]
        p = " ".join(f"{float(px(a)):.1f},{float(py(b)):.1f}" for a, b in zip(x, y) if np.isfinite(b))
        s.append(f'<polyline points="{p}" fill="none" stroke="{c}" stroke-width="2"/>'
                 f'<text x="{w - right + 10}" y="{top + 14 + 18 * i}" fill="{c}">{name}</text>')
    path.write_text("\n".join(s + ["</svg>"]) + "\n")


def training_curve(log, out):
    line = [json.loads(t) for t in pathlib.Path(log).read_text().splitlines() if t]
    step = [r["step"] for r in line]
    plot(out / "training.svg", "training", "step", "share", {"nearest neighbour right": (step, [r["match"] for r in line]),
                                                              "corner's pixel right": (step, [r["cell"] for r in line])}, y_range=(0, 1))


def sweeps(named, out):
    """One plot a kind of sweep and figure."""
    for kind, (label, degrees) in SIGNATURE.items():
        for column, title in (("repeatability", "repeatability"), ("mscore", "matching score")):
            lines = {}
            for name, found in named:
                y = [np.nanmean([r.get(column, np.nan) for r in found if r["scene"].startswith(kind + "_") and r["k"] == k + 2] or [np.nan])
                     for k in range(len(degrees))]
                if np.isfinite(y).any():
                    lines[name] = (degrees, y)
            if lines:
                plot(out / f"{kind}-{column}.svg", f"{title} by {label.split(',')[0]}", label, title, lines, degrees if len(degrees) < 10 else degrees[::2],
                     (0, 1))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--out", type=pathlib.Path, required=True)
    a.add_argument("--log")
    a.add_argument("--rows", nargs="+", default=[])
    a.add_argument("--sweep", nargs="+", default=[])
    o = a.parse_args()
    plots = o.out / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    if o.log:
        training_curve(o.log, plots)
    if o.sweep:
        sweeps([rows(s) for s in o.sweep], plots)
    results = {}
    for s in o.rows:
        name, found = rows(s)
        results[name] = {"summary": evaluate.summary(found)}
    (o.out / "report-tables.md").write_text(evaluate.table(results) + "\n")


if __name__ == "__main__":
    main()

"""A bar chart of bench/results/peers-*.json as SVG: least times of the forward pass, one group an instruction set.

usage: chart.py RESULTS_FOLDER OUTPUT.svg
"""
import json
import os
import sys

TITLES = {"native": "as the machine is", "avx512": "without AMX", "avx2": "AVX2 only"}
COLOURS = {"superpoint": "#0b6e4f", "peer": "#9aa5b1"}
LEFT, WIDTH, BAR, GAP = 190, 720, 16, 6


def text(x, y, string, size=12, anchor="start", weight="normal"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" '
            f'font-weight="{weight}" fill="#1f2933">{string}</text>')


def main(folder, output):
    groups = []
    for isa in TITLES:
        path = os.path.join(folder, f"peers-{isa}.json")
        if os.path.exists(path):
            with open(path) as f:
                groups.append(json.load(f))
    parts, y = [], 24
    parts.append(text(12, y, f"SuperPoint forward pass, {groups[0]['size']}, {groups[0]['machine']['threads']} cores: "
                             "milliseconds, shorter is better", 14, weight="bold"))
    for group in groups:
        y += 34
        parts.append(text(12, y, TITLES[group["isa"]], 13, weight="bold"))
        longest = max(r["min_ms"] for r in group["results"])
        for r in sorted(group["results"], key=lambda r: r["min_ms"]):
            y += BAR + GAP
            length = (WIDTH - LEFT - 70) * r["min_ms"] / longest
            colour = COLOURS["superpoint" if r["name"] == "superpoint" else "peer"]
            parts.append(text(LEFT - 8, y, f"{r['name']} {r['precision']}", anchor="end"))
            parts.append(f'<rect x="{LEFT}" y="{y - BAR + 4}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
            parts.append(text(LEFT + length + 6, y, f"{r['min_ms']:.1f}"))
    y += 30
    with open(output, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" font-family="sans-serif">'
                f'<rect width="100%" height="100%" fill="#ffffff"/>' + "".join(parts) + "</svg>\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

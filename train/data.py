"""The pictures that training and evaluation may use: `manifest.json` names each one, its package, author and licence.

    python3 train/data.py fetch DIR      unpack the manifest's packages below DIR and check every digest
    python3 train/data.py check DIR      only check
    python3 train/data.py credits        print CREDITS.md from the manifest
    python3 train/data.py hash DIR       print the digests of the files as they lie in DIR (to write a manifest)

Debian packages come through `apt-get download`, Python wheels through `pip download`, so the system's own mirrors,
signatures and caches apply.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
MANIFEST = HERE / "manifest.json"


def manifest(path=MANIFEST):
    return json.loads(pathlib.Path(path).read_text())


def digest(path=MANIFEST):
    """SHA-256 of the manifest file: what a weights file names as its data."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def location(root, entry):
    return pathlib.Path(root) / entry["package"] / entry["path"]


def pictures(root, split):
    """Paths of the pictures of one split ("train" or "held-out"), in manifest order, that exist below `root`."""
    out = [location(root, e) for e in manifest()["pictures"] if e["split"] == split]
    missing = [str(p) for p in out if not p.exists()]
    if missing:
        raise FileNotFoundError(f"{len(missing)} pictures of the manifest are missing, first {missing[0]}: "
                                f"run `data.py fetch {root}`")
    return out


def load_grey(path, longest=2600):
    """A manifest picture as BGR uint8; raw arrays of scipy are grey or RGB bytes behind a pickle-free header."""
    import bz2
    import cv2
    import numpy as np
    path = pathlib.Path(path)
    if path.suffix == ".dat" and path.stem == "face":  # bz2 of 768 x 1024 RGB bytes
        raw = np.frombuffer(bz2.decompress(path.read_bytes()), np.uint8).reshape(768, 1024, 3)[:, :, ::-1]
    else:
        raw = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if raw is None:
            raise ValueError(f"{path}: not a picture that OpenCV reads")
    side = max(raw.shape[:2])
    if side > longest:
        raw = cv2.resize(raw, None, fx=longest / side, fy=longest / side, interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(raw)


def fetch(root):
    root = pathlib.Path(root)
    root.mkdir(parents=True, exist_ok=True)
    for p in manifest()["packages"]:
        target = root / p["name"]
        if target.exists():
            continue
        with tempfile.TemporaryDirectory() as tmp:
            print("fetch", p["kind"], p["name"], p["version"], file=sys.stderr)
            if p["kind"] == "debian":
                subprocess.run(["apt-get", "download", "-qq", p["name"]], cwd=tmp, check=True)
                deb = next(pathlib.Path(tmp).glob("*.deb"))
                subprocess.run(["dpkg-deb", "-x", deb, target], check=True)
            else:
                subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                                f"{p['name']}=={p['version']}"], cwd=tmp, check=True)
                with zipfile.ZipFile(next(pathlib.Path(tmp).glob("*.whl"))) as z:
                    z.extractall(target)
    check(root)


def check(root):
    bad = 0
    for e in manifest()["pictures"]:
        path = location(root, e)
        if not path.exists() or sha256(path) != e["sha256"]:
            print("missing or changed:", path, file=sys.stderr)
            bad += 1
    if bad:
        raise SystemExit(f"{bad} pictures differ from the manifest")
    print(f"{len(manifest()['pictures'])} pictures as in the manifest", file=sys.stderr)


def credits():
    m = manifest()
    lines = ["# Credits of the training pictures", "",
             "Made by `train/data.py credits` from `train/manifest.json`. The weights were trained on scenes that the "
             "project's own generator draws and on crops of the pictures marked *train*; those marked *held-out* "
             "were only measured on. No picture is part of the weights file or of this repository.", "",
             "| picture | author | licence | package | split |", "|---|---|---|---|---|"]
    versions = {p["name"]: p["version"] for p in m["packages"]}
    for e in m["pictures"]:
        lines.append(f"| {e['title']} | {e['author']} | {e['licence']} | {e['package']} {versions[e['package']]} | {e['split']} |")
    return "\n".join(lines) + "\n"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("action", choices=["fetch", "check", "credits", "hash"])
    a.add_argument("dir", nargs="?")
    o = a.parse_args()
    if o.action == "credits":
        print(credits(), end="")
    elif not o.dir:
        a.error("a directory is needed")
    elif o.action == "fetch":
        fetch(o.dir)
    elif o.action == "check":
        check(o.dir)
    else:
        for e in manifest()["pictures"]:
            print(sha256(location(o.dir, e)), e["path"])


if __name__ == "__main__":
    main()

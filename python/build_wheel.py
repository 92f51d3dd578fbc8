#!/usr/bin/env python3
"""Build the wheel: the package, the shared library with the libraries that it needs, and the weights.

usage: python/build_wheel.py LIBRARY FOLDER

A wheel is a ZIP with a list of what is in it (PEP 427). The tag says the oldest glibc that it runs on
(PEP 600): that of this machine. Libraries other than those that every Linux system has are put beside
ours under names that nobody else uses, and found by $ORIGIN; patchelf changes the names.
"""

import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent
# What PEP 600 lets a wheel take for granted, as far as our libraries ask for it.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|libz)\.so")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def needed(path):
    """(name, path) of each library that `path` loads and that is not the system's."""
    found = []
    for line in run("ldd", str(path)).splitlines():
        parts = line.split()
        if len(parts) >= 3 and parts[1] == "=>" and not SYSTEM.match(parts[0]):
            if parts[2] == "not":
                sys.exit(f"{path}: {parts[0]} is missing")
            found.append((parts[0], Path(parts[2])))
    return found


def bundle(library, folder):
    """Copy the library and what it needs; returns the copies."""
    target = folder / "libsuperpoint.so"
    shutil.copy(library, target)
    renamed = {}
    for name, path in needed(library):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        stem, rest = name.split(".so", 1)
        renamed[name] = f"{stem}-{digest}.so{rest}"
        shutil.copy(path.resolve(), folder / renamed[name])
    copies = [target] + [folder / name for name in renamed.values()]
    for copy in copies:
        os.chmod(copy, 0o755)
        # one change a call: several at once leave the names of symbol versions behind (patchelf 0.14)
        run("patchelf", "--set-rpath", "$ORIGIN", str(copy))
        run("patchelf", "--set-soname", copy.name, str(copy))
        for old, new in renamed.items():
            run("patchelf", "--replace-needed", old, new, str(copy))
    outside = sorted({name for copy in copies for name, path in needed(copy) if path.parent != folder})
    if outside:
        sys.exit(f"these libraries are still looked for outside the wheel: {outside}")
    return copies


def licences(library):
    """{file name: text} of the Debian packages whose libraries go into the wheel."""
    found = {}
    for _, path in needed(library):
        package = run("dpkg", "-S", str(path.resolve()) if path.resolve().exists() else str(path)).split(":")[0]
        found[f"{package}.txt"] = Path(f"/usr/share/doc/{package}/copyright").read_bytes()
    return found


def version():
    header = (TREE / "include" / "superpoint.h").read_text()
    return re.search(r'SP_VERSION_STRING "([^"]+)"', header).group(1)


def metadata(number):
    readme = (HERE / "README.md").read_text()
    return (
        "Metadata-Version: 2.1\nName: superpoint\n"
        f"Version: {number}\n"
        "Summary: SuperPoint keypoints and descriptors by a C library, on the CPU at hand\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: numpy>=1.21\n"
        "Classifier: License :: OSI Approved :: Apache Software License\n"
        "Classifier: Operating System :: POSIX :: Linux\nClassifier: Typing :: Typed\n"
        f"Description-Content-Type: text/markdown\n\n{readme}"
    )


def write(path, members):
    """The archive, with times of 1980 so that the same content gives the same bytes."""
    lines = []
    record = next(name for name in members if name.endswith("/RECORD"))
    for name, (data, _) in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},," if name == record else f"{name},sha256={digest},{len(data)}")
    members[record] = ("\n".join(lines).encode() + b"\n", 0o644)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in members.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def main():
    library, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    number, glibc = version(), platform.libc_ver()[1].split(".")
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}"
    members = {}
    for path in sorted((HERE / "superpoint").iterdir()):
        if path.suffix in (".py", ".typed"):
            members[f"superpoint/{path.name}"] = (path.read_bytes(), 0o644)
    for name in ("superpoint.safetensors", "superpoint.int8"):
        members[f"superpoint/{name}"] = ((TREE / "weights" / name).read_bytes(), 0o644)
    with tempfile.TemporaryDirectory() as temporary:
        for copy in bundle(library, Path(temporary)):
            members[f"superpoint/{copy.name}"] = (copy.read_bytes(), 0o755)
    info = f"superpoint-{number}.dist-info"
    members[f"{info}/METADATA"] = (metadata(number).encode(), 0o644)
    members[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)
    members[f"{info}/LICENSE"] = ((TREE / "LICENSE").read_bytes(), 0o644)
    for name, text in licences(library).items():
        members[f"{info}/licenses/{name}"] = (text, 0o644)
    members[f"{info}/RECORD"] = (b"", 0o644)
    path = folder / f"superpoint-{number}-{tag}.whl"
    write(path, members)
    print(path)


if __name__ == "__main__":
    main()

"""What the tests of the command line share: the program, and pictures to give it."""

import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM = os.path.abspath(os.environ.get("SUPERPOINT", "build/bin/superpoint"))


def write_picture(path, seed, width=200, height=152):
    """A PPM of overlapping grey rectangles: corners enough, and no library needed."""
    rng = random.Random(seed)
    rows = [bytearray([60]) * (3 * width) for _ in range(height)]
    for _ in range(24):
        x, y = rng.randrange(width - 20), rng.randrange(height - 20)
        w, h = rng.randrange(8, 70), rng.randrange(8, 70)
        grey = rng.randrange(256)
        for row in rows[y : y + h]:
            end = min(width, x + w)
            row[3 * x : 3 * end] = bytes([grey]) * (3 * (end - x))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"P6 %d %d 255\n" % (width, height) + b"".join(rows))


def npy(data):
    """An NPY file as (dtype, shape, bytes)."""
    assert data[:6] == b"\x93NUMPY"
    (length,) = struct.unpack("<H", data[8:10])
    header = eval(data[10 : 10 + length])  # noqa: S307: a Python literal, written by the program under test
    return header["descr"], header["shape"], data[10 + length :]


def npz(path):
    """An NPZ file as {name: (dtype, shape, bytes)}."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name[: -len(".npy")]: npy(archive.read(name)) for name in archive.namelist()}


def floats(data):
    return struct.unpack("<%df" % (len(data) // 4), data)


class CommandTest(unittest.TestCase):
    """A folder that goes away, and the program in it."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.env = dict(os.environ)

    def path(self, *parts):
        return os.path.join(self.folder.name, *parts)

    def run_program(self, *args, code=0, stdin=b"", **options):
        done = subprocess.run(
            [PROGRAM, *args], cwd=self.folder.name, env=self.env, input=stdin, capture_output=True, timeout=120, **options
        )
        self.assertEqual(done.returncode, code, "%s\n%s" % (args, done.stderr.decode()))
        return done.stdout.decode(), done.stderr.decode()


def main():
    if not os.access(PROGRAM, os.X_OK):
        print("there is no program at", PROGRAM)
        sys.exit(77)
    unittest.main(verbosity=1)

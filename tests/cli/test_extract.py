"""superpoint extract: inputs, formats, bad pictures, interruption and resumption."""

import base64
import csv
import io
import json
import os
import pty
import random
import re
import select
import signal
import sqlite3
import struct
import subprocess
import time
import zipfile

from common import PROGRAM, CommandTest, floats, main, npy, npz, write_picture

SMALL = ["--resize", "200x152", "--max-keypoints", "100", "--threads", "1", "--decoders", "2"]
FORMATS = {"hdf5": "out.h5", "npz": "out.npz.d", "colmap": "out.db", "colmap-text": "out.txt.d", "jsonl": "out.jsonl",
           "csv": "out.csv"}


def content(path):
    """The bytes of a file, or of all files of a folder by name."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return file.read()
    result = {}
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            with open(full, "rb") as file:
                result[os.path.relpath(full, path)] = file.read()
    return result


class Extract(CommandTest):
    def make_pictures(self, count, folder="pictures"):
        for i in range(count):
            write_picture(self.path(folder, "sub" if i % 4 == 3 else "", "p%03d.ppm" % i), i)

    def extract(self, *args, code=0, **options):
        return self.run_program("extract", *SMALL, *args, code=code, **options)

    def names(self, database):
        with sqlite3.connect(self.path(database)) as db:
            return [row[0] for row in db.execute("SELECT name FROM images ORDER BY image_id")]

    def test_formats_hold_the_same(self):
        self.make_pictures(5)
        for name, output in FORMATS.items():
            self.extract("pictures", "--format", name, "--output", output, "--coordinates", "colmap")
        with open(self.path("out.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        identity, records = lines[0]["superpoint"], {r["image"]: r for r in lines[1:]}
        self.assertEqual(sorted(records), ["p000.ppm", "p001.ppm", "p002.ppm", "p004.ppm", "sub/p003.ppm"])
        self.assertEqual(list(records), self.names("out.db"))
        self.assertEqual(identity["parameters"]["max_keypoints"], "100")
        self.assertRegex(identity["weights"]["sha256"], "^[0-9a-f]{64}$")
        self.assertEqual(identity["pictures"]["count"], 5)
        with open(self.path("out.csv")) as file:
            self.assertTrue(file.readline().startswith("# superpoint {"))
            table = list(csv.DictReader(file))
        db = sqlite3.connect(self.path("out.db"))
        self.assertEqual(db.execute("SELECT model, width, height FROM cameras").fetchall(), [(2, 200, 152)] * 2)
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertEqual(json.loads(db.execute("SELECT value FROM superpoint").fetchone()[0])["weights"],
                         identity["weights"])
        total = 0
        for image, record in records.items():
            n = record["num_keypoints"]
            self.assertTrue(0 < n <= 100)
            points = [c for point in record["keypoints"] for c in point]
            descriptors = npy(zipfile.ZipFile(io.BytesIO(base64.b64decode(record["descriptors"]["data"])))
                              .read("descriptors.npy"))
            self.assertEqual(descriptors[:2], ("<f2", (n, 256)))
            archive = npz(self.path("out.npz.d", image + ".npz"))
            self.assertEqual(archive["keypoints"][:2], ("<f4", (n, 2)))
            self.assertEqual(list(floats(archive["keypoints"][2])), points)
            self.assertEqual(archive["descriptors"], descriptors)
            self.assertEqual(struct.unpack("<2q", archive["image_size"][2]), (200, 152))
            rows, cols, data = db.execute("SELECT rows, cols, data FROM keypoints NATURAL JOIN images WHERE name = ?",
                                          (image,)).fetchone()
            self.assertEqual((rows, cols, list(floats(data))), (n, 2, points))
            rows, cols, data = db.execute("SELECT rows, cols, data FROM descriptors NATURAL JOIN images WHERE name = ?",
                                          (image,)).fetchone()
            self.assertEqual((rows, cols, len(data)), (n, 256, 256 * n))
            half = struct.unpack("<%de" % (256 * n), descriptors[2])
            self.assertLessEqual(max(abs(q - (128 + 256 * v)) for q, v in zip(data, half)), 0.6)
            with open(self.path("out.txt.d", image + ".txt")) as file:
                self.assertEqual(file.readline().split(), [str(n), "128"])
                text = [line.split() for line in file]
            self.assertTrue(all(len(line) == 132 for line in text))
            self.assertEqual([struct.unpack("f", struct.pack("f", float(v)))[0] for line in text for v in line[:2]],
                             points)
            part = [row for row in table if row["image"] == image]
            self.assertEqual([struct.unpack("f", struct.pack("f", float(row[c])))[0] for row in part for c in "xy"],
                             points)
            self.assertLess(abs(sum(float(part[0]["d%d" % k]) ** 2 for k in range(256)) - 1), 1e-4)
            total += n
        self.assertEqual(len(table), total)
        db.close()
        with open(self.path("out.h5"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89HDF\r\n\x1a\n")
        self.assertFalse([name for name in os.listdir(self.folder.name) if name.endswith(".partial")])

    def test_coordinates_follow_the_format(self):
        self.make_pictures(1)
        first = {}
        for name, output in FORMATS.items():
            if name in ("colmap", "npz"):
                self.extract("pictures", "--format", name, "--output", output, "--resize", "400x304")
        db = sqlite3.connect(self.path("out.db"))
        first["colmap"] = floats(db.execute("SELECT data FROM keypoints").fetchone()[0])[:2]
        first["npz"] = floats(npz(self.path("out.npz.d", "p000.ppm.npz"))["keypoints"][2])[:2]
        db.close()
        for c in range(2):  # colmap: (p + 0.5) s; npz: p s; s = 1/2
            self.assertAlmostEqual(first["colmap"][c] - first["npz"][c], 0.25, places=5)

    def test_subpixel(self):
        self.make_pictures(1)
        every = ["--keypoint-threshold", "0"]
        same = ["--resize", "200x152", "--max-keypoints", "100", *every]
        found = {}
        for name, flags in (("none", []), ("off", ["--subpixel=false"]), ("on", ["--subpixel"]),
                            ("word", ["--subpixel", "on"])):
            self.extract("pictures", *every, "--format", "npz", "--output", name, *flags)
            found[name] = npz(self.path(name, "p000.ppm.npz"))
        self.assertEqual(found["none"], found["off"])
        self.assertEqual(found["on"], found["word"])
        self.assertEqual(found["on"]["scores"], found["none"]["scores"])
        whole, fine = (floats(found[name]["keypoints"][2]) for name in ("none", "on"))
        self.assertTrue(all(v == int(v) for v in whole))
        self.assertTrue(all(abs(v - w) <= 0.5 for v, w in zip(fine, whole)))
        self.assertGreater(sum(v != w for v, w in zip(fine, whole)), 0.9 * len(whole))
        out, _ = self.run_program("detect", *same, "--subpixel", "pictures/p000.ppm")
        self.assertEqual([struct.unpack("f", struct.pack("f", float(v)))[0] for line in out.splitlines()
                          for v in line.split()[:2]], list(fine))
        out, _ = self.run_program("detect", *same, "--json", "pictures/p000.ppm", "--subpixel")
        self.assertEqual([struct.unpack("f", struct.pack("f", v))[0] for p in json.loads(out)["keypoints"] for v in p],
                         list(fine))

    def test_inputs(self):
        self.make_pictures(6)
        everything = ["p000.ppm", "p001.ppm", "p002.ppm", "p004.ppm", "p005.ppm", "sub/p003.ppm"]
        self.extract("pictures/", "--output", "a.db")
        self.assertEqual(self.names("a.db"), everything)
        self.extract("./pictures/p00[0-2].ppm", "--output", "b.db")
        self.assertEqual(self.names("b.db"), ["pictures/" + n for n in everything[:3]])
        self.extract("--root", "pictures", "--list", "-", "--output", "c.db", stdin=b"p005.ppm\r\n\nsub\np000.ppm\n")
        self.assertEqual(self.names("c.db"), ["p005.ppm", "sub/p003.ppm", "p000.ppm"])
        write_picture(self.path("pictures", "odd\nname.ppm"), 9)
        self.extract("--list", "-", "--null", "--output", "d.db", stdin=b"pictures/odd\nname.ppm\0pictures/p000.ppm\0")
        self.assertEqual(self.names("d.db"), ["pictures/odd\nname.ppm", "pictures/p000.ppm"])
        self.extract("pictures", "pictures/p000.ppm", "--output", "e.db")
        self.assertEqual(len(self.names("e.db")), 7)
        os.symlink("..", self.path("pictures", "sub", "loop"))
        self.extract("--root", "pictures", "--output", "f.db")
        self.assertEqual(len(self.names("f.db")), 7)

    def test_usage(self):
        self.make_pictures(1)
        for args in (["pictures"], ["--output", "a.h5"], ["pictures", "--output", "a.xyz"],
                     ["pictures", "--output", "a.h5", "--format", "xml"], ["pictures", "--output", "a.h5", "--camera", "FISH"],
                     ["pictures", "--output", "a.db", "--camera", "PINHOLE,1,2"], ["-", "--output", "a.h5"],
                     ["pictures", "--output", "a.db", "--descriptor-dtype", "float32"],
                     ["pictures", "--output", "a.h5", "--decoders", "0"], ["pictures", "--output", "a.h5", "--nonsense"]):
            _, err = self.run_program("extract", *args, code=2)
            self.assertTrue(err.startswith("superpoint extract: "), err)
        _, err = self.extract("nowhere/*.jpg", "--output", "a.h5", code=1)
        self.assertIn("nowhere/*.jpg: matches nothing", err)
        os.mkdir(self.path("empty"))
        _, err = self.extract("empty", "--output", "a.h5", code=1)
        self.assertIn("no picture was found", err)
        self.assertNotIn("a.h5", os.listdir(self.folder.name))

    def test_bad_pictures_are_left_out(self):
        self.make_pictures(4)
        with open(self.path("pictures", "p001.ppm"), "r+b") as file:
            file.truncate(1000)
        with open(self.path("pictures", "p0005.jpg"), "wb") as file:
            file.write(b"hello")
        out, err = self.extract("pictures", "pictures/missing.png", "--output", "a.db", code=1)
        self.assertEqual(self.names("a.db"), ["pictures/p000.ppm", "pictures/p002.ppm", "pictures/sub/p003.ppm"])
        for name in ("pictures/p001.ppm: ", "pictures/p0005.jpg: ", "pictures/missing.png: No such file"):
            self.assertIn(name, err)
        self.assertIn("3 failed", err)
        self.assertEqual(out, "")
        _, err = self.extract("pictures", "--output", "b.db", "--fail-fast", code=1)
        self.assertIn("stopped", err)
        self.assertFalse(os.path.exists(self.path("b.db")))
        os.remove(self.path("pictures", "p001.ppm"))
        os.remove(self.path("pictures", "p0005.jpg"))
        self.extract("pictures", "--output", "b.db", "--fail-fast")
        self.assertEqual(len(self.names("b.db")), 3)

    def test_sets_are_not_mixed(self):
        self.make_pictures(2)
        self.extract("pictures", "--output", "a.h5")
        before = content(self.path("a.h5"))
        _, err = self.extract("pictures", "--output", "a.h5")
        self.assertIn("complete already", err)
        _, err = self.extract("pictures", "--output", "a.h5", "--nms-radius", "3", code=2)
        self.assertIn("parameters.nms_radius is 4 there and 3 here", err)
        _, err = self.extract("pictures", "--output", "a.h5", "--subpixel", code=2)
        self.assertIn("parameters.subpixel is false there and true here", err)
        write_picture(self.path("pictures", "new.ppm"), 77)
        _, err = self.extract("pictures", "--output", "a.h5", code=2)
        self.assertIn("of other pictures", err)
        self.assertEqual(content(self.path("a.h5")), before)
        self.extract("pictures", "--output", "a.h5", "--overwrite")
        self.assertNotEqual(content(self.path("a.h5")), before)
        with open(self.path("mine.h5"), "w") as file:
            file.write("precious")
        self.extract("pictures", "--output", "mine.h5", code=2)
        self.assertEqual(content(self.path("mine.h5")), b"precious")

    def test_folders_of_others_are_never_removed(self):
        self.make_pictures(1)
        os.makedirs(self.path("home"))
        with open(self.path("home", "thesis.tex"), "w") as file:
            file.write("precious")
        for extra in ([], ["--overwrite"]):
            self.extract("pictures", "--format", "npz", "--output", "home", *extra, code=2)
            self.extract("pictures", "--format", "csv", "--output", "home", *extra, code=2)
        self.assertEqual(content(self.path("home", "thesis.tex")), b"precious")
        self.extract("pictures", "../outside.ppm", "--format", "npz", "--output", "o", code=1)

    def start(self, *args, **options):
        return subprocess.Popen([PROGRAM, "extract", *SMALL, *args], cwd=self.folder.name,
                                stderr=options.pop("stderr", subprocess.PIPE), **options)

    def wait_for_journal(self, output, size):
        path = self.path(output + ".partial", "journal-0")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if os.path.exists(path) and os.path.getsize(path) > size:
                return
            time.sleep(0.002)
        self.fail("nothing was written")

    def test_interrupt_and_go_on(self):
        self.make_pictures(60)
        process = self.start("pictures", "--output", "a.h5")
        self.wait_for_journal("a.h5", 100000)
        _, err = self.extract("pictures", "--output", "a.h5", code=1)
        self.assertIn("another process is writing this output", err)
        process.send_signal(signal.SIGINT)
        err = process.communicate()[1].decode()
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("the same command goes on", err)
        self.assertFalse(os.path.exists(self.path("a.h5")))
        _, err = self.extract("pictures", "--output", "a.h5", "--border", "5", code=2)
        self.assertIn("parameters.border is 4 there and 5 here", err)
        changed = self.path("pictures", "p000.ppm")
        write_picture(changed, 1000)
        _, err = self.extract("pictures", "--output", "a.h5")
        self.assertRegex(err, "going on after [0-9]+ pictures?")
        self.extract("pictures", "--output", "b.h5")
        self.assertEqual(content(self.path("a.h5")), content(self.path("b.h5")))

    def test_kill_at_any_moment(self):
        self.make_pictures(40)
        rng = random.Random(5)
        for name, output in FORMATS.items():
            command = ["pictures", "--format", name]
            began = time.monotonic()
            self.extract(*command, "--output", "clean-" + output)
            whole = time.monotonic() - began
            process = self.start(*command, "--output", output, stderr=subprocess.DEVNULL)
            self.wait_for_journal(output, 0)
            process.kill()
            self.assertEqual(process.wait(), -signal.SIGKILL)
            for _ in range(10 if name == "hdf5" else 3):  # may come too late on a machine whose speed changes
                process = self.start(*command, "--output", output, stderr=subprocess.DEVNULL)
                time.sleep(rng.uniform(0.0, 0.4) * whole)
                process.kill()
                process.wait()
            self.extract(*command, "--output", output)
            self.assertEqual(content(self.path(output)), content(self.path("clean-" + output)), name)
            self.assertFalse(os.path.exists(self.path(output + ".partial")))

    def test_a_broken_journal_costs_only_its_end(self):
        self.make_pictures(8)
        self.extract("pictures", "--output", "a.db")
        process = self.start("pictures", "--output", "b.db", stderr=subprocess.DEVNULL)
        self.wait_for_journal("b.db", 100000)
        process.kill()
        process.wait()
        journal = self.path("b.db.partial", "journal-0")
        if os.path.exists(journal):
            with open(journal, "r+b") as file:
                file.seek(-200, os.SEEK_END)
                file.write(os.urandom(200))
        self.extract("pictures", "--output", "b.db")
        self.assertEqual(content(self.path("a.db")), content(self.path("b.db")))

    def test_threads_do_not_change_a_byte(self):
        self.make_pictures(6)
        self.run_program("extract", "pictures", "--output", "a.h5", "--threads", "1", "--decoders", "1")
        self.run_program("extract", "pictures", "--output", "b.h5", "--threads", "3", "--decoders", "5")
        self.assertEqual(content(self.path("a.h5")), content(self.path("b.h5")))

    def test_bar_on_a_terminal_only(self):
        self.make_pictures(30)
        master, slave = pty.openpty()
        process = self.start("pictures", "--output", "a.h5", "--resize", "320x240", stderr=slave)
        os.close(slave)
        shown = b""
        while process.poll() is None or select.select([master], [], [], 0)[0]:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    shown += os.read(master, 65536)
                except OSError:
                    break
        process.wait()
        os.close(master)
        self.assertEqual(process.returncode, 0)
        text = shown.decode()
        self.assertIsNotNone(re.search(r"\r.*\[#*\.*\] [0-9]+/30 pictures, [0-9.]+/s, [0-9:]+ left", text), text)
        _, err = self.extract("pictures", "--output", "b.h5")
        self.assertNotIn("\r", err)
        self.assertRegex(err, r"30 pictures, 0 failed, [0-9.]+ s, [0-9.]+/s: b.h5\n$")
        _, err = self.extract("pictures", "--output", "c.h5", "--quiet")
        self.assertEqual(err, "")


if __name__ == "__main__":
    main()

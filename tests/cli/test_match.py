"""superpoint match: pictures, feature files, pairs, formats."""

import json
import math
import os
import sqlite3
import struct

from common import CommandTest, main, write_picture

FEW = ["--resize", "200x152", "--max-keypoints", "60"]


def shifted(source, target, dx, dy):
    """The PPM moved right by dx and down by dy, by cropping."""
    with open(source, "rb") as file:
        header, body = file.readline(), file.read()
    _, width, height, _ = header.split()
    width, height = int(width), int(height)
    rows = [body[3 * width * y : 3 * width * (y + 1)] for y in range(height)]
    rows = [row[3 * dx :] for row in rows[dy:]]
    with open(target, "wb") as file:
        file.write(b"P6 %d %d 255\n" % (width - dx, height - dy) + b"".join(rows))


class Match(CommandTest):
    def make_scene(self, count=5):
        for i in range(count):
            write_picture(self.path("pictures", "p%d.ppm" % i), 1, 264 + 8 * i, 200)

    def match(self, *args, **options):
        return self.run_program("match", *args, **options)

    def database(self, name, sql):
        with sqlite3.connect(self.path(name)) as db:
            return db.execute(sql).fetchall()

    def descriptors(self, name):
        """{picture: (id, [unit vectors])} of a database."""
        found = {}
        for picture, number, rows, data in self.database(
            name, "SELECT name, image_id, rows, data FROM images NATURAL JOIN descriptors"
        ):
            vectors = []
            for i in range(rows):
                v = [b - 128 for b in data[256 * i : 256 * (i + 1)]]
                length = math.sqrt(sum(x * x for x in v))
                vectors.append([x / length for x in v])
            found[picture] = (number, vectors)
        return found

    def expected(self, a, b, ratio):
        """Mutual nearest neighbours with a ratio both ways, in plain Python."""
        table = [[sum(map(float.__mul__, x, y)) for y in b] for x in a]

        def nearest(row):
            order = sorted(range(len(row)), key=lambda j: (-row[j], j))
            d = [math.sqrt(max(0, 2 - 2 * row[j])) for j in order[:2]]
            return order[0] if len(d) < 2 or d[0] <= ratio * d[1] else -1

        there = [nearest(row) for row in table]
        back = [nearest(column) for column in zip(*table)]
        return [(i, j) for i, j in enumerate(there) if j >= 0 and back[j] == i]

    def test_two_pictures(self):
        write_picture(self.path("a.ppm"), 3, 400, 304)
        shifted(self.path("a.ppm"), self.path("b.ppm"), 24, 16)
        out, err = self.match("a.ppm", "b.ppm", "--resize", "native", "--draw", "m.png")
        lines = [[float(v) for v in line.split()] for line in out.splitlines()]
        self.assertGreater(len(lines), 30)
        moved = sum(abs(xa - xb - 24) < 1.5 and abs(ya - yb - 16) < 1.5 for xa, ya, xb, yb, _ in lines)
        self.assertGreater(moved / len(lines), 0.8)
        with open(self.path("m.png"), "rb") as file:
            head = file.read(24)
        self.assertEqual(struct.unpack(">2I", head[16:24]), (400 + 376 + 8, 304))
        document = json.loads(self.match("a.ppm", "b.ppm", "--resize", "native", "--json")[0])
        self.assertEqual(document["num_matches"], len(lines))
        for (i, j), line in zip(document["matches"], lines):
            a, b = document["images"][0]["keypoints"][i], document["images"][1]["keypoints"][j]
            for x, y in zip([*a, *b], line):
                self.assertAlmostEqual(x, y, places=3)
        _, err = self.match("a.ppm", "nothing.ppm", code=1)
        self.assertIn("nothing.ppm: ", err)

    def test_database_against_plain_python(self):
        self.make_scene(3)
        names = ["pictures/p2.ppm", "pictures/p0.ppm", "pictures/p1.ppm"]  # ids against the order of names
        self.run_program("extract", "--list", "-", "--output", "a.db", *FEW, stdin="\n".join(names).encode())
        for ratio in (1.0, 0.9):
            self.match("a.db", "--output", "a.db", "--max-ratio", str(ratio))
            sets = self.descriptors("a.db")
            rows = dict((r[0], r[1:]) for r in self.database("a.db", "SELECT pair_id, rows, cols, data FROM matches"))
            self.assertEqual(len(rows), 3)
            for x in names:
                for y in names:
                    if sets[x][0] >= sets[y][0]:
                        continue
                    count, cols, data = rows[sets[x][0] * 2147483647 + sets[y][0]]
                    pairs = set(zip(*[iter(struct.unpack("<%dI" % (2 * count), data))] * 2))
                    self.assertEqual(cols, 2)
                    self.assertEqual(pairs, set(self.expected(sets[x][1], sets[y][1], ratio)))
                    self.assertGreater(len(pairs), 0)
        self.assertEqual(self.database("a.db", "SELECT COUNT(*) FROM two_view_geometries"), [(0,)])
        self.match("a.db", "--output", "a.db", "--skip-verification")
        self.assertEqual(self.database("a.db", "SELECT COUNT(*), MIN(config) FROM two_view_geometries"), [(3, 2)])
        noted = json.loads(self.database("a.db", "SELECT value FROM superpoint WHERE key = 'matching'")[0][0])
        self.assertTrue(noted["mutual"])

    def test_formats_and_pairs(self):
        self.make_scene()
        self.run_program("extract", "pictures", "--output", "f.h5", *FEW)
        self.run_program("extract", "pictures", "--output", "f.db", *FEW)
        self.match("f.h5", "--output", "all.txt")
        self.match("f.h5", "--output", "f.db")
        blocks = {}
        with open(self.path("all.txt")) as file:
            for block in file.read().split("\n\n"):
                if block.strip():
                    head, *pairs = block.strip().split("\n")
                    blocks[tuple(head.split())] = [tuple(map(int, p.split())) for p in pairs]
        self.assertEqual(len(blocks), 10)
        ids = dict(self.database("f.db", "SELECT name, image_id FROM images"))
        rows = dict(self.database("f.db", "SELECT pair_id, data FROM matches"))
        for (a, b), pairs in blocks.items():
            data = rows[ids[a] * 2147483647 + ids[b]]
            self.assertEqual(list(zip(*[iter(struct.unpack("<%dI" % (len(data) // 4), data))] * 2)), pairs)
        for args, count in ((["--sequential", "2"], 7), (["--sequential", "99"], 10), (["--retrieval", "4"], 10)):
            _, err = self.match("f.h5", "--output", "m.h5", *args)
            self.assertIn("%d pairs" % count, err)
        with open(self.path("pairs.txt"), "w") as file:
            file.write("# two pairs\np0.ppm p3.ppm\n\n  p4.ppm\tp1.ppm \n")
        _, err = self.match("f.h5", "--output", "m.h5", "--pairs", "pairs.txt")
        self.assertIn("2 pairs", err)
        _, err = self.match("f.h5", "f.h5", "--output", "m.h5")
        self.assertIn("25 pairs", err)
        with open(self.path("m.h5"), "rb") as file:
            first = file.read()
        self.match("f.h5", "f.h5", "--output", "n.h5", "--threads", "3", "--quiet")
        with open(self.path("n.h5"), "rb") as file:
            self.assertEqual(file.read(), first)

    def test_refusals(self):
        self.make_scene(2)
        self.run_program("extract", "pictures", "--output", "f.db", *FEW)
        self.run_program("extract", "pictures", "--output", "g.db", *FEW)
        with open(self.path("f.db"), "rb") as file:
            before = file.read()
        with open(self.path("pairs.txt"), "w") as file:
            file.write("p0.ppm p1.ppm\np0.ppm other.ppm\n")
        _, err = self.match("f.db", "--output", "f.db", "--pairs", "pairs.txt", code=1)
        self.assertIn("line 2: there are no features of other.ppm", err)
        with open(self.path("pairs.txt"), "w") as file:
            file.write("p0.ppm p1.ppm\np0.ppm p0.ppm\n")
        _, err = self.match("f.db", "--output", "f.db", "--pairs", "pairs.txt", code=2)
        self.assertIn("cannot be paired with itself", err)
        with open(self.path("f.db"), "rb") as file:
            self.assertEqual(file.read(), before)
        with sqlite3.connect(self.path("g.db")) as db:
            (text,) = db.execute("SELECT value FROM superpoint WHERE key = 'identity'").fetchone()
            other = json.loads(text)
            other["weights"]["sha256"] = "0" * 64
            db.execute("UPDATE superpoint SET value = ? WHERE key = 'identity'", (json.dumps(other),))
        _, err = self.match("f.db", "g.db", "--output", "m.h5", code=2)
        self.assertIn("made with different weights", err)
        with sqlite3.connect(self.path("g.db")) as db:
            db.execute("UPDATE keypoints SET rows = 1000000000000")
        _, err = self.match("g.db", "--output", "m.h5", code=1)
        self.assertIn("has no keypoints [N,2] with descriptors [256,N]", err)
        with open(self.path("junk.h5"), "wb") as file:
            file.write(os.urandom(5000))
        self.match("junk.h5", "--output", "m.h5", code=1)
        self.assertFalse([n for n in os.listdir(self.folder.name) if n.startswith("m.h5")])
        for args in (["f.db"], ["f.db", "--output", "m.xyz"], ["f.db", "--output", "m.h5", "--max-ratio", "2"],
                     ["f.db", "--output", "m.h5", "--sequential", "1", "--retrieval", "1"], [],
                     ["f.db", "--output", "m.h5", "--draw", "x.png"], ["a", "b", "c"]):
            self.match(*args, code=2)


if __name__ == "__main__":
    main()

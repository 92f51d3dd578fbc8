"""What a user is told who has made a mistake: where it is, and, for the command line, that it is one (2)."""
import os
import pathlib
import subprocess
import sys
import unittest

SUPERPOINT = os.environ["SUPERPOINT"]
TOP = pathlib.Path(__file__).resolve().parents[2]
PICTURE, NO_PICTURE = str(TOP / "sample_data/bridge.jpg"), str(TOP / "README.md")


class Mistakes(unittest.TestCase):
    def refuse(self, code, told, *arguments, **environment):
        done = subprocess.run([SUPERPOINT, *arguments], capture_output=True, text=True, timeout=300,
                              env={**os.environ, **environment})
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(told, done.stderr)
        if code == 2 and len(arguments) > 1:
            self.assertIn(f"`superpoint {arguments[0]} --help` shows the options", done.stderr)

    def test_picture_is_named(self):
        for command in (["detect"], ["validate"], ["bench", "--image"], ["match", PICTURE]):
            self.refuse(1, f"superpoint {command[0]}: {NO_PICTURE}: not a picture", *command, NO_PICTURE)
        self.refuse(1, "no-such.jpg: No such file", "detect", "no-such.jpg")

    def test_auto_does_not_fall_back_to_the_reference(self):
        told = "sse is not known; there are c, avx2"
        for code, arguments, environment in ((2, ["--level", "sse"], {}), (2, [], {"SUPERPOINT_CPU": "sse"})):
            done = subprocess.run([SUPERPOINT, "info", *arguments], capture_output=True, text=True, timeout=300,
                                  env={**os.environ, **environment})
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertIn(told, done.stderr)

    def test_a_full_disk_behind_standard_output(self):
        for arguments in (["--help"], ["--version"], ["detect", "--help"], ["detect", PICTURE], ["detect", PICTURE, "--json"],
                          ["info"], ["info", "--json"], ["match", PICTURE, PICTURE],
                          ["detect", PICTURE, "--max-keypoints", "-1"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([SUPERPOINT, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("standard output: cannot be written", done.stderr, arguments)
            self.assertEqual(done.stderr.count("cannot be written"), 1, done.stderr)

    def test_options(self):
        self.refuse(2, "--max-keypoint: is not an option", "detect", PICTURE, "--max-keypoint", "5")
        self.refuse(2, "--max-keypoints: its value is missing", "detect", PICTURE, "--max-keypoints")
        self.refuse(2, 'max_keypoints: "0x10" is not a whole number', "detect", PICTURE, "--max-keypoints", "0x10")
        self.refuse(2, "-n: is not an option", "detect", "-n", PICTURE)
        self.refuse(2, "--json: takes no value", "detect", "--json=1", PICTURE)
        self.refuse(2, "x: this command takes no operands", "info", "x")

    def test_numbers(self):
        for option, value in (("--decoders", "0"), ("--decoders", "257"), ("--peer-timeout", "0")):
            self.refuse(2, f"{option[2:]}: {value} is not within", "extract", PICTURE, "--output", "x.h5", option, value)
        for value in ("", "x", "0x1", " 1", "1 ", "inf", "nan", "1e999"):
            self.refuse(2, f'max-ratio: "{value}" is not a number', "match", "a", "b", "--max-ratio", value)
            self.refuse(2, f'threads: "{value}" is not a whole number', "info", "--threads", value)
        self.refuse(2, "max_ratio: 3 is not above 0", "match", "a", "b", "--max-ratio", "3")

    def test_files_that_do_not_fit_the_command(self):
        self.refuse(2, "c: is a third file", "match", "a", "b", "c")
        self.refuse(2, "one at most can be given", "match", "a", "--output", "m.h5", "--pairs", "p", "--retrieval", "3")
        self.refuse(2, "--output: is missing", "match", "a", "b", "--sequential", "3")
        self.refuse(2, "asked for by --list -", "extract", "-", "--output", "x.h5")
        self.refuse(2, "no pictures were named", "extract", "--output", "x.h5")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)

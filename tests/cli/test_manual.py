#!/usr/bin/env python3
"""The manual pages of `superpoint`: a page for each command, and in it each option that --help tells, and no other."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SUPERPOINT = os.environ["SUPERPOINT"]
PAGES = pathlib.Path(os.environ["SUPERPOINT_MAN"])


def told_by(*arguments):
    return subprocess.run([SUPERPOINT, *arguments], capture_output=True, text=True, check=True).stdout


def commands():
    return re.findall(r"^  ([a-z-]+)  *\S", told_by("--help").split("Commands:\n")[1].split("\n\n")[0], re.M)


def page_of(command):
    return PAGES / (f"superpoint-{command}.1" if command else "superpoint.1")


class Manual(unittest.TestCase):
    def test_a_page_for_each_command(self):
        names = commands()
        self.assertIn("detect", names)
        self.assertIn("blackhole-check", names)
        self.assertEqual(sorted(PAGES.glob("*.1")), sorted(page_of(c) for c in ["", *names]))
        index = page_of("").read_text().replace("\\-", "-")
        for name in names:
            self.assertIn(f".BR superpoint-{name} (1)", index)

    def test_options_and_their_text(self):
        for command in commands():
            page = page_of(command).read_text().replace("\\-", "-").replace("\\e", "\\")
            # In help: two spaces, the option, its value, and its text there or on the next line.
            told = re.findall(r"^  (--\S+(?: [^\s]+)?)(?:  +|\n +)(\S.*)$", told_by(command, "--help"), re.M)
            written = re.findall(r"^\.B (--.*)\n(.*)$", page, re.M)
            self.assertGreaterEqual(len(told), 2, command)
            self.assertEqual([(option, text.lstrip("\\&")) for option, text in written], told, command)

    def test_pages_are_well_formed(self):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        for command in ["", *commands()]:
            done = subprocess.run(["man", "--warnings", "-l", str(page_of(command))], capture_output=True, text=True,
                                  env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertIn("superpoint", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)

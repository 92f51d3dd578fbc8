"""What people read: help, manual page, guide and completions tell of the same commands and options."""
import pathlib
import re
import shutil
import subprocess
import unittest

from support import BIN, ManagerTest, main

TOP = pathlib.Path(__file__).resolve().parents[2]


class Help(ManagerTest):
    def commands(self):
        return re.findall(r"^  ([a-z]+)  +\S", self.ok("--help").out.split("Options:")[0], re.M)

    def options(self, command):
        return re.findall(r"--([a-z-]+)", self.ok(command, "--help").out.split("Options:")[-1].split("\n\n")[0])

    def test_manual_and_guide_name_everything(self):
        manual = (TOP / "programs/tt-model/tt-model.1").read_text().replace("\\-", "-")
        guide = (TOP / "docs/manager.md").read_text()
        names = self.commands()
        self.assertGreaterEqual(len(names), 15)
        for command in names:
            self.assertRegex(manual, r"\.SS .*\b%s\b" % command)
            section = next(part for part in re.split(r"^\.S[SH] ", manual, flags=re.M)
                           if re.match(r'"?[^"\n]*\b%s\b' % command, part) and part[0] not in "ANE")
            told, written = set(self.options(command)), set(re.findall(r"^\.(?:B|BI|BR|RB) .*", section, re.M))
            written = set(re.findall(r"--([a-z][a-z-]*)", " ".join(written)))
            # What many commands understand stands once, behind the last of them.
            elsewhere = {"json"} | ({"restart"} if command == "resume" else set())  # resume speaks of serve's option
            self.assertEqual(written - elsewhere, told - elsewhere, command)
        for code in ("no accelerator free", "a program is missing", "permission denied", "not supported", "offline"):
            self.assertIn(code, guide.replace("\n", " "))
            self.assertIn(code, manual.replace("\n", " "))

    def test_manual_is_well_formed(self):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        done = subprocess.run(["man", "--warnings", "-l", str(TOP / "programs/tt-model/tt-model.1")], capture_output=True,
                              text=True, env={**self.env, "MANPAGER": "cat", "MANWIDTH": "100"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_command_has_help(self):
        for command in self.commands():
            text = self.ok(command, "--help").out
            self.assertTrue(text.startswith("Usage: tt-model " + command))
            for line in text.splitlines():
                self.assertLessEqual(len(line), 110, line)

    def test_usage_errors(self):
        self.assertIn("Did you mean: tt-model serve x/y", self.fails(2, "pull", "serve", "x/y").err)
        for args in (["nope"], ["--nope"], ["pull"], ["pull", "--nope", "a/b"], ["logs", "a/b", "--tail"],
                     ["logs", "a/b", "--tail", "-1"], ["logs", "a/b", "--since", "soon"], ["stop", "word"], ["rm"],
                     ["completion", "tcsh"], ["serve", "a/b", "--port", "x"], ["pull", "a/b", "--json=1"]):
            self.fails(2, *args)
        for word, meant in (("serv", "serve"), ("pul", "pull"), ("lsit", "list"), ("staop", "stop"), ("legs", "logs")):
            self.assertIn("Did you mean: tt-model %s\n" % meant, self.fails(2, word, "x/y").err)
        for word in ("package-thin", "whitelist", "unwhitelist"):
            self.assertIn("of the Python tt-model", self.fails(7, word, "x").err)
        self.assertEqual(self.fails(2, "stop", "word", "--json").json()["error"]["code"], "USAGE")
        self.assertIn("what a package is built from", self.fails(2, "serve", "./tt-model.yaml").err)

    def test_a_full_disk_behind_standard_output(self):
        for words in (["--help"], ["--version"], ["pull", "--help"], ["version"], ["list"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([BIN, *words], stdout=full, stderr=subprocess.PIPE, text=True, env=self.env)
            self.assertEqual((done.returncode, done.stderr), (1, "tt-model: cannot write to the standard output\n"), words)

    def test_bash_completion(self):
        script = self.ok("completion", "bash").out
        bash = shutil.which("bash")
        ask = ("PATH=%s:$PATH\n" % BIN.parent + script +
               '\nCOMP_WORDS=(%s); COMP_CWORD=%d; _tt_model; echo "${COMPREPLY[*]}"')
        run = lambda words, at: subprocess.run([bash, "-c", ask % (words, at)], capture_output=True, text=True, check=True,
                                               env=self.env).stdout.split()
        self.assertEqual(run("tt-model pu", 1), ["pull", "push", "publish"])
        self.assertEqual(run("tt-model -v serve --pro", 3), ["--profile"])
        self.assertEqual(run("tt-model completion f", 2), ["fish"])
        for shell in ("zsh", "fish"):
            text = self.ok("completion", shell).out
            self.assertIn("unpublish", text)
            if shutil.which(shell):
                subprocess.run([shell, "-n", "/dev/stdin"], input=text, text=True, check=True)


if __name__ == "__main__":
    main()

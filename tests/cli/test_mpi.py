"""superpoint extract under mpirun: the result is that of one process; work moves; a death costs little."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

from common import PROGRAM, CommandTest, main, write_picture

MPIRUN = shutil.which("mpirun")
ROOT = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
COMMON = ["--threads", "1", "--decoders", "1", "--resize", "native"]


def children_of(pid):
    """Processes of the program below `pid`, from /proc."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry) as file:
                    parents[int(entry)] = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    below, found = {pid}, []
    for _ in range(4):
        below |= {p for p, parent in parents.items() if parent in below}
    for p in below:
        try:
            if os.path.samefile("/proc/%d/exe" % p, PROGRAM):
                found.append(p)
        except OSError:
            pass
    return found


def rank_of(pid):
    with open("/proc/%d/environ" % pid, "rb") as file:
        variables = dict(v.split(b"=", 1) for v in file.read().split(b"\0") if b"=" in v)
    return int(variables[b"OMPI_COMM_WORLD_RANK"])


class Mpi(CommandTest):
    def mpi(self, *args, ranks=4):
        return [MPIRUN, *ROOT, "--oversubscribe", "-n", str(ranks), PROGRAM, "extract", *COMMON, *args]

    def same(self, a, b):
        with open(self.path(a), "rb") as first, open(self.path(b), "rb") as second:
            self.assertEqual(first.read(), second.read())

    def test_work_is_shared(self):
        # the first process's quarter is a hundred times the work of the others'
        for i in range(20):
            size = (320, 240) if i < 5 else (48, 48)
            write_picture(self.path("pictures", "p%02d.ppm" % i), i, *size)
        with open(self.path("pictures", "q.png"), "wb") as file:
            file.write(b"not a picture")
        self.run_program("extract", "pictures", *COMMON, "--output", "one.h5", code=1)
        done = subprocess.run(self.mpi("pictures", "--output", "four.h5"), cwd=self.folder.name, capture_output=True,
                              timeout=120)
        err = done.stderr.decode()
        self.assertEqual(done.returncode, 1, err)
        self.same("one.h5", "four.h5")
        shares = [int(n) for n in re.findall(r"process [1-4] of 4: ([0-9]+) pictures", err)]
        self.assertEqual(len(shares), 4, err)
        self.assertEqual(sum(shares), 21)
        first = int(re.search(r"process 1 of 4: ([0-9]+)", err).group(1))
        self.assertLess(first, 6, "others took from the first process's quarter")
        self.assertIn("21 pictures, 1 failed", err)
        done = subprocess.run(self.mpi("pictures", "--output", "four.h5", "--border", "9"), cwd=self.folder.name,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.decode().count("not mixed"), 1)

    def test_a_process_dies(self):
        for i in range(80):
            write_picture(self.path("pictures", "p%02d.ppm" % i), i, 240, 184)
        self.run_program("extract", "pictures", *COMMON, "--output", "one.db")
        process = subprocess.Popen(self.mpi("pictures", "--output", "four.db"), cwd=self.folder.name,
                                   stderr=subprocess.DEVNULL)
        journal = self.path("four.db.partial", "journal-2")
        end = time.monotonic() + 60
        while not (os.path.exists(journal) and os.path.getsize(journal) > 20000) and time.monotonic() < end:
            time.sleep(0.005)
        ranks = children_of(process.pid)
        self.assertEqual(len(ranks), 4)
        os.kill(ranks[1], signal.SIGKILL)
        self.assertNotEqual(process.wait(60), 0)
        self.assertFalse(os.path.exists(self.path("four.db")))
        done = subprocess.run(self.mpi("pictures", "--output", "four.db", ranks=2), cwd=self.folder.name,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertRegex(done.stderr.decode(), "going on after [0-9]+ pictures")
        self.same("one.db", "four.db")

    def hang(self, victim):
        """Stop (not end) one process of four while it works; the output has to come all the same."""
        process = subprocess.Popen(self.mpi("pictures", "--output", "four.h5", "--peer-timeout", "5"), cwd=self.folder.name,
                                   stderr=subprocess.PIPE)
        journal = self.path("four.h5.partial", "journal-%d" % victim)
        end = time.monotonic() + 60
        while not (os.path.exists(journal) and os.path.getsize(journal) > 20000) and time.monotonic() < end:
            time.sleep(0.005)
        (hung,) = [p for p in children_of(process.pid) if rank_of(p) == victim]
        os.kill(hung, signal.SIGSTOP)
        err = process.communicate(timeout=240)[1].decode()
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("1 of 4 processes finished nothing for 5 s", err)
        self.assertIn("81 pictures, 1 failed", err)
        self.same("one.h5", "four.h5")
        self.assertFalse(os.path.exists(self.path("four.h5.partial")))
        end = time.monotonic() + 30
        while os.path.exists("/proc/%d" % hung) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertFalse(os.path.exists("/proc/%d" % hung), "mpirun ends the one that hung")
        os.remove(self.path("four.h5"))

    def test_a_process_hangs(self):
        for i in range(80):
            write_picture(self.path("pictures", "p%02d.ppm" % i), i, 480, 368)
        with open(self.path("pictures", "q.png"), "wb") as file:
            file.write(b"not a picture")
        self.run_program("extract", "pictures", *COMMON, "--output", "one.h5", code=1)
        self.hang(2)
        self.hang(0)  # the one that would have written the output


if __name__ == "__main__":
    plugin = os.path.join(os.path.dirname(PROGRAM), "..", "lib", "superpoint", "superpoint-mpi.so")
    if not MPIRUN or not os.path.exists(plugin):
        print("there is no mpirun, or the build has no MPI")
        sys.exit(77)
    main()

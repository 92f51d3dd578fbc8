"""Chips: chosen, taken once, given back. The machine needs none: in a mount namespace of its own two nodes that
lead nowhere stand in for two cards, and Docker runs there too.
"""
import json
import os
import shutil
import subprocess
import sys
import time

import docker_case
from docker_case import DockerTest
from support import SKIP

SETUP = """
set -e
mount --make-rprivate /
work=$(mktemp -d)
mount -t tmpfs none "$work"
mkdir "$work/up" "$work/work"
mount -t overlay overlay -o lowerdir=/dev,upperdir="$work/up",workdir="$work/work" /dev
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mkdir -p /dev/tenstorrent /dev/hugepages-1G
mknod /dev/tenstorrent/0 c 1 3
mknod /dev/tenstorrent/1 c 1 3
mount -t hugetlbfs none /dev/hugepages-1G -o pagesize=1G
"""


CPU = ("--engine", "cpu")  # the nodes lead nowhere: an engine for the card would refuse them


class Chips(DockerTest):
    def setUp(self):
        super().setUp()
        self.install()
        self.manifest = json.loads(self.pulled_manifest().read_text())

    def named(self, name):
        """The same package under another name."""
        self.manifest["name"] = name
        path = self.tmp / name / "tt_kernel_manifest.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(self.manifest))
        return path

    def devices(self, container):
        doc = self.engine.inspect(container)
        return ([d["PathOnHost"] for d in doc["HostConfig"]["Devices"] or []],
                doc["Config"]["Labels"].get("org.tenstorrent.tt-model.devices"))

    def test_two_at_once_and_no_third(self):
        runs = [self.start("serve", self.named(name), "--json", *CPU) for name in ("one", "two")]
        for run in runs:
            out, err = run.communicate(timeout=300)
            self.assertEqual(run.returncode, 0, err)
            self.assertEqual(json.loads(out)["profile"], "p150")
        held = sorted(self.devices("tt-model-%s-p150" % name) for name in ("one", "two"))
        self.assertEqual(held, [(["/dev/tenstorrent/0"], "0"), (["/dev/tenstorrent/1"], "1")])
        done = self.fails(3, "serve", self.named("three"))
        self.assertIn("Taken: 0,1.", done.err)
        self.ok("serve", self.named("three"), "--profile", "cpu", "--detach")
        self.ok("stop", self.named("one"))
        self.ok("serve", self.named("three"), "--detach")
        self.assertEqual(len({self.devices("tt-model-%s-p150" % n)[1] for n in ("two", "three")}), 2)

    def test_chosen_by_hand(self):
        self.fails(2, "serve", self.named("one"), "--device-id", "0,1")
        self.fails(2, "serve", self.named("one"), "--device-id", "x")
        self.fails(3, "serve", self.named("one"), "--device-id", "7")
        self.ok("serve", self.named("one"), "--device-id", "1", "--detach")
        self.assertEqual(self.devices("tt-model-one-p150")[1], "1")
        self.fails(3, "serve", self.named("two"), "--device-id", "1")
        line = self.ok("serve", self.named("two"), "--print").out
        self.assertIn("--device /dev/tenstorrent/0:/dev/tenstorrent/0", line)
        self.assertIn("org.tenstorrent.tt-model.devices=0", line)

    def test_containers_of_others(self):
        image = self.manifest["container"]["image"]["tag"]
        run = lambda *flags: self.engine.docker("run", "-d", "--name", "other", *flags, image, "serve").returncode
        for flags in (["--privileged", "--ipc", "host"], ["--ipc", "host", "-v", "/dev:/host-dev"],
                      ["--ipc", "host", "--device", "/dev/tenstorrent/0", "--device", "/dev/tenstorrent/1"]):
            self.assertEqual(run(*flags), 0)
            self.fails(3, "serve", self.named("one"))
            self.engine.remove_containers()
        self.assertEqual(run("--device", "/dev/tenstorrent/0"), 0)  # with an IPC namespace of its own
        self.ok("serve", self.named("one"), "--detach")

    def test_killed_while_it_held_a_chip(self):
        self.ok("serve", self.named("one"), *CPU)
        pid = self.engine.inspect("tt-model-one-p150")["State"]["Pid"]
        self.engine.kill("tt-model-one-p150", "STOP")
        stop = self.start("stop", self.named("one"), "--json")
        time.sleep(2)
        os.kill(pid, 9)
        out, err = stop.communicate(timeout=150)
        self.assertEqual(stop.returncode, 0, err)
        # The image has no tt-smi, so the reset cannot have run; that is said, and not hidden.
        self.assertEqual(json.loads(out)["servers"][0]["outcome"], "reset-failed")
        self.assertIn("may need a restart", err)

    def test_without_hugepages(self):
        subprocess.run(["umount", "/dev/hugepages-1G"], check=True)
        try:
            self.assertIn("/dev/hugepages-1G is not mounted", self.fails(9, "serve", self.named("one")).err)
        finally:
            subprocess.run(["mount", "-t", "hugetlbfs", "none", "/dev/hugepages-1G", "-o", "pagesize=1G"], check=True)


if __name__ == "__main__":
    if os.environ.get("TT_MODEL_TEST_INSIDE"):
        docker_case.run()
    if os.geteuid() != 0 or not shutil.which("unshare") or os.path.exists("/dev/tenstorrent"):
        print("skipped: needs root and unshare, and a machine without cards")
        sys.exit(SKIP)
    if subprocess.run(["unshare", "-m", "sh", "-c", SETUP], capture_output=True).returncode != 0:
        print("skipped: this machine cannot mount what stands in for cards")
        sys.exit(SKIP)
    os.environ["TT_MODEL_TEST_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "-m", "sh", "-c", SETUP + 'exec "$0" "$@"', sys.executable, *sys.argv])

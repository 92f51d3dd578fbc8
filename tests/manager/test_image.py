"""The image of packaging/Containerfile: built by `docker build` on a Debian that is made for it, run as people
run it, and then packaged, pushed, pulled and served as `tt-model package` would do with its files.

No registry is asked: debootstrap makes the base from Debian's mirror (MIRROR names another), once, beside the
build. Some minutes long and some gigabytes large, so it stands apart from the other tests: `make image-test`.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import docker_case
import test_docker
from docker_case import BUILD, TOP, DockerTest
from support import SKIP

BASE = "debian:bookworm"
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
NAME = "superpoint-p150"


def make_base(engine):
    """debian:bookworm as its own tools make it."""
    archive = BUILD / "debian-bookworm.tar"
    if not archive.exists():
        with tempfile.TemporaryDirectory(prefix="tt-model-base-") as place:
            subprocess.run(["debootstrap", "--variant=minbase", "bookworm", place + "/root", MIRROR], check=True,
                           stdout=subprocess.DEVNULL)
            subprocess.run(["tar", "-C", place + "/root", "-cf", str(archive) + ".part", "."], check=True)
        os.rename(str(archive) + ".part", archive)
    engine.docker("import", archive, BASE, check=True)


def build_image(engine):
    """From what git has, as after a clone: nothing of this build."""
    with tempfile.TemporaryDirectory(prefix="tt-model-sources-") as sources:
        files = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-C", str(TOP), "--null", "-T", "-", "-cf", sources + ".tar"], input=files, check=True)
        subprocess.run(["tar", "-C", sources, "-xf", sources + ".tar"], check=True)
        os.unlink(sources + ".tar")
        done = engine.docker("build", "--network", "host", "-f", sources + "/packaging/Containerfile", "-t", NAME, sources)
    if done.returncode:
        sys.exit("docker build failed:\n" + done.stdout[-6000:] + done.stderr[-2000:])


def unpack(engine, place):
    """The files of the image, for `tt-model package`."""
    name = engine.docker("create", NAME, check=True).stdout.strip()
    root = place / "rootfs"
    root.mkdir()
    with subprocess.Popen(["docker", "export", name], env={**os.environ, "DOCKER_HOST": engine.host},
                          stdout=subprocess.PIPE) as export:
        # Docker adds places of its own to every container.
        own = ["--exclude=" + path for path in (".dockerenv", "dev", "proc", "sys", "etc/hostname", "etc/hosts",
                                                "etc/resolv.conf", "etc/mtab")]
        subprocess.run(["tar", "-C", str(root), *own, "-x"], stdin=export.stdout, check=True)
    if export.returncode:
        sys.exit("docker export failed")
    engine.remove_containers()
    return root


class Image(DockerTest):
    @classmethod
    def setUpClass(cls):
        start = time.monotonic()
        make_base(cls.engine)
        print("base: %.0f s" % (time.monotonic() - start), flush=True)
        start = time.monotonic()
        build_image(cls.engine)
        print("docker build: %.0f s, %.1f MB" % (time.monotonic() - start, cls.engine.image(NAME)["Size"] / 1e6), flush=True)
        DockerTest.rootfs = unpack(cls.engine, cls.place)

    def test_as_people_run_it(self):
        """No weights are named, so the project's own are served."""
        self.engine.docker("run", "-d", "--name", "plain", "-p", "20099:20000", NAME, check=True)
        deadline = time.monotonic() + 120
        while "Application startup complete" not in self.engine.logs("plain"):
            self.assertLess(time.monotonic(), deadline, self.engine.logs("plain"))
            time.sleep(0.2)
        self.assertGreater(self.predict("http://127.0.0.1:20099")["num_keypoints"], 100)
        self.assertEqual(self.engine.docker("stop", "-t", "30", "plain").returncode, 0)
        self.assertEqual(self.engine.inspect("plain")["State"]["ExitCode"], 0)

    def test_holds_nothing_else(self):
        programs = sorted(p.name for p in (self.rootfs / "usr/bin").iterdir())
        self.assertEqual(programs, ["superpoint", "superpoint-entrypoint"], "no shell, no package manager")
        self.assertLess(self.engine.image(NAME)["Size"], 64e6)

    test_the_whole_way = test_docker.Docker.test_the_whole_way


if __name__ == "__main__":
    for program in ("debootstrap", "docker", "skopeo"):
        if not shutil.which(program):
            print("skipped: %s is not installed" % program)
            sys.exit(SKIP)
    docker_case.run()

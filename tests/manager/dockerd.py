"""A Docker Engine of its own for the tests: Debian's dockerd with its own socket and directories."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time


class Unavailable(Exception):
    pass


class Engine:
    def __init__(self):
        if os.geteuid() != 0:
            raise Unavailable("dockerd needs root")
        if not shutil.which("dockerd"):
            raise Unavailable("dockerd is not installed (Debian: docker.io)")
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="tt-model-dockerd-"))
        self.socket = self.dir / "docker.sock"
        self.host = "unix://%s" % self.socket
        self.log = open(self.dir / "log", "w")
        self.process = subprocess.Popen(
            ["dockerd", "--storage-driver=vfs", "--data-root", self.dir / "data", "--exec-root", self.dir / "exec",
             "--pidfile", self.dir / "pid", "-H", self.host], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            if self.socket.exists() and self.docker("version").returncode == 0:
                return
            time.sleep(0.2)
        tail = (self.dir / "log").read_text()[-2000:]
        self.close()
        raise Unavailable("dockerd does not start here:\n" + tail)

    def docker(self, *args):
        return subprocess.run(["docker", *args], env={**os.environ, "DOCKER_HOST": self.host}, capture_output=True, text=True)

    def close(self):
        if self.process.poll() is None:
            names = self.docker("ps", "-aq").stdout.split()
            if names:
                self.docker("rm", "-f", *names)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

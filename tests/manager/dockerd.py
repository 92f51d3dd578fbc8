"""A Docker Engine of its own for the tests: Debian's dockerd with its own socket and directories.

The tests ask it over its socket, as tt-model does: the docker client costs a second a call on a busy machine.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse


class Unavailable(Exception):
    pass


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=300)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine:
    """`data`: a directory that keeps images from one run to the next; without it everything goes at the end."""

    def __init__(self, data=None):
        if os.geteuid() != 0:
            raise Unavailable("dockerd needs root")
        if not shutil.which("dockerd"):
            raise Unavailable("dockerd is not installed (Debian: docker.io)")
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="tt-model-dockerd-"))
        self.socket = self.dir / "docker.sock"
        self.host = "unix://%s" % self.socket
        self.data = data or self.dir / "data"
        self.log = open(self.dir / "log", "w")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["dockerd", "--storage-driver=vfs", "--data-root", self.data, "--exec-root", self.dir / "exec",
             "--pidfile", self.dir / "pid", "-H", self.host], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.api("GET", "/version")
                return
            except OSError:
                time.sleep(0.1)
        tail = (self.dir / "log").read_text()[-2000:]
        self.close()
        raise Unavailable("dockerd does not start here:\n" + tail)

    # ---- the API -------------------------------------------------------------------------------------
    def call(self, method, path, body=None):
        connection = Connection(self.socket)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"} if body is not None else {})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def api(self, method, path, body=None):
        """The answer as JSON; None where the thing that was asked for is not there."""
        status, data = self.call(method, path, body)
        if status == 404:
            return None
        if status >= 400:
            raise RuntimeError("%s %s: %d %s" % (method, path, status, data.decode(errors="replace")))
        return json.loads(data) if data else {}

    def containers(self, all=True):
        return [c["Id"] for c in self.api("GET", "/containers/json?all=%d" % all)]

    def inspect(self, name):
        return self.api("GET", "/containers/%s/json" % name)

    def image(self, ref):
        return self.api("GET", "/images/%s/json" % urllib.parse.quote(ref))

    def kill(self, name, signal_name):
        self.api("POST", "/containers/%s/kill?signal=%s" % (name, signal_name))

    def logs(self, name):
        """All that a container printed, without the heads of the frames."""
        data = self.call("GET", "/containers/%s/logs?stdout=1&stderr=1" % name)[1]
        return re.sub(rb"[\x01\x02]\0\0\0.{4}", b"", data, flags=re.S).decode(errors="replace")

    def remove_containers(self):
        for name in self.containers():
            self.api("DELETE", "/containers/%s?force=1&v=1" % name)

    def remove_image(self, ref):
        self.api("DELETE", "/images/%s?force=1" % urllib.parse.quote(ref))

    def docker(self, *args, **how):
        """The docker client, for what people type."""
        return subprocess.run(["docker", *map(str, args)], env={**os.environ, "DOCKER_HOST": self.host},
                              capture_output=True, text=True, **how)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    # ---- the end -------------------------------------------------------------------------------------
    def close(self):
        if self.process.poll() is None:
            try:
                self.remove_containers()
            except (OSError, RuntimeError):
                pass  # it hangs or is half up: what it runs goes with it
        self.stop()
        self.log.close()
        # A network namespace, or a file system of a container that was killed, may still be mounted.
        with open("/proc/self/mounts") as mounts:
            left = [line.split()[1] for line in mounts if line.split()[1].startswith(str(self.dir) + "/")]
        for place in reversed(left):
            subprocess.run(["umount", place], check=True)
        shutil.rmtree(self.dir, ignore_errors=True)

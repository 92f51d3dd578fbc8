"""Three servers behind a real nginx, with the configuration of packaging/compose: spread, death, draining."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

from common import PROGRAM, CommandTest, main, write_picture

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CONF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "compose", "nginx.conf")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nginx(CommandTest):
    def start_server(self, number):
        port = self.ports[number]
        log = open(self.path("server%d.log" % number), "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([PROGRAM, "serve", "--port", str(port), "--threads", "1"], stdout=log,
                                   stderr=subprocess.STDOUT)
        self.addCleanup(self.stop, process)
        return process

    def stop(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()

    def wait_for(self, port, path="/readyz"):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=5) as reply:
                    if reply.status == 200:
                        return
            except OSError:
                time.sleep(0.05)
        self.fail("no answer at port %d" % port)

    def setUp(self):
        super().setUp()
        self.ports = [free_port() for _ in range(3)]
        self.front = free_port()
        self.servers = [self.start_server(i) for i in range(3)]
        with open(CONF) as file:
            conf = file.read()
        for i, port in enumerate(self.ports):
            conf = conf.replace("superpoint-%d:20000" % (i + 1), "127.0.0.1:%d" % port)
        conf, count = re.subn(r"listen 8080;", "listen 127.0.0.1:%d;" % self.front, conf)
        self.assertEqual(count, 1)
        self.assertNotIn("superpoint-1:", conf)
        with open(self.path("nginx.conf"), "w") as file:
            file.write("daemon off; master_process off; pid %s; error_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
                       "client_body_temp_path %s; proxy_temp_path %s; fastcgi_temp_path %s; uwsgi_temp_path %s;"
                       " scgi_temp_path %s;\n%s}\n" % (self.path("pid"), *[self.path(n) for n in "bpfus"], conf))
        for port in self.ports:
            self.wait_for(port)
        self.nginx = subprocess.Popen([NGINX, "-p", self.folder.name, "-c", self.path("nginx.conf")],
                                      stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop, self.nginx)
        self.wait_for(self.front, "/health")
        write_picture(self.path("a.ppm"), 4, 160, 120)
        with open(self.path("a.ppm"), "rb") as file:
            self.picture = file.read()

    def predict(self):
        request = urllib.request.Request(
            "http://127.0.0.1:%d/predict?resize=160x120&return_descriptors=false" % self.front, self.picture,
            {"Content-Type": "image/x-portable-pixmap"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["keypoints"]

    def answered(self, number):
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.ports[number], timeout=10) as reply:
            text = reply.read().decode()
        return sum(float(m) for m in re.findall(r'^superpoint_requests_total\{[^}]*predict[^}]*\} ([0-9.e+]+)$', text, re.M))

    def load(self, seconds, between):
        """Requests from four clients for a while, with `between` called in the middle; how many, and what failed."""
        expected = self.predict()
        counts, failures, end = [0], [], time.monotonic() + seconds
        lock = threading.Lock()

        def client():
            while time.monotonic() < end:
                try:
                    same = self.predict() == expected
                    with lock:
                        counts[0] += 1
                        if not same:
                            failures.append("another answer")
                except (OSError, urllib.error.HTTPError) as error:
                    with lock:
                        failures.append(repr(error))

        threads = [threading.Thread(target=client) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(seconds / 3)
        between()
        for thread in threads:
            thread.join()
        return counts[0], failures

    def test_spread_death_and_draining(self):
        count, failures = self.load(3, lambda: None)
        self.assertEqual(failures, [])
        self.assertGreater(count, 9)
        shares = [self.answered(i) for i in range(3)]
        self.assertTrue(all(share > 0 for share in shares), shares)
        # one dies: nobody notices
        count, failures = self.load(4, self.servers[0].kill)
        self.assertEqual(failures, [])
        self.assertGreater(count, 3)
        # one is asked to stop: it finishes what it has, and nobody notices
        count, failures = self.load(4, lambda: self.servers[1].send_signal(signal.SIGTERM))
        self.assertEqual(failures, [])
        self.assertEqual(self.servers[1].wait(60), 0)
        # the last one alone, and one that comes back
        self.servers[0] = self.start_server(0)
        self.wait_for(self.ports[0])
        before = self.answered(0)
        time.sleep(2.1)  # nginx tries it again after fail_timeout
        count, failures = self.load(4, lambda: None)
        self.assertEqual(failures, [])
        self.assertGreater(self.answered(0), before)


if __name__ == "__main__":
    if not NGINX:
        print("there is no nginx")
        sys.exit(77)
    main()

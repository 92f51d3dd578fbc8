"""Start, ports, drain and end."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from harness import PROGRAM, Server, b64, checkers, noise, read_answer, wait_until


class Life(unittest.TestCase):
    def test_says_when_ready_and_when_gone(self):
        server = Server()
        text = "".join(server.lines)
        self.assertIn("Application startup complete", text)
        self.assertEqual(server.get("/health").json(), {"status": "ok"})
        self.assertEqual(server.stop(), 0)
        self.assertIn("Application shutdown complete", "".join(server.lines))

    def test_interrupt_ends_it_too(self):
        server = Server()
        self.assertEqual(server.stop(signal.SIGINT), 0)

    def test_default_port_or_the_next_free_one(self):
        first = Server(port=())
        second = Server(port=())
        try:
            self.assertTrue(20000 <= first.port <= 20100)
            self.assertTrue(first.port < second.port <= 20100)
            self.assertEqual(second.get("/health").status, 200)
        finally:
            self.assertEqual(first.stop(), 0)
            self.assertEqual(second.stop(), 0)

    def test_a_named_port_that_is_taken_is_an_error(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            server = Server(port=("--port", str(port)), wait=False)
            self.assertEqual(server.process.wait(20), 1)
            self.assertIn(str(port), server.process.stderr.read().decode())
            server.process.communicate()

    def test_wrong_options_are_usage_errors(self):
        for options in (("--max-queue", "0"), ("--max-queue", "x"), ("--no-such",), ("--tls-key", "x"), ("operand",),
                        ("--port", "70000")):
            server = Server(*options, wait=False)
            code = server.process.wait(20)
            text = server.process.stderr.read().decode()
            server.process.communicate()
            self.assertEqual(code, 2, (options, text))
            self.assertTrue(text)

    def test_sigterm_loses_no_accepted_request(self):
        server = Server("--resize", "320x240", "--drain-timeout", "150", "--request-timeout", "150")
        body = json.dumps({"image": b64(checkers()), "return_descriptors": False}).encode()
        request = (b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                   % len(body)) + body
        sockets = []
        for _ in range(24):
            sock = server.connect(160)
            sock.sendall(request)
            sockets.append(sock)
        server.process.send_signal(signal.SIGTERM)
        statuses = [read_answer(sock) for sock in sockets]
        for sock in sockets:
            sock.close()
        self.assertEqual([a and a.status for a in statuses], [200] * 24)
        self.assertTrue(wait_until(lambda: server.process.poll() is not None))
        self.assertEqual(server.stop(), 0)

    def test_idle_keep_alive_connections_do_not_hold_up_the_end(self):
        server = Server()
        idle = server.connect()
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(read_answer(idle).status, 200)
        silent = server.connect()
        self.assertEqual(server.stop(timeout=10), 0)
        idle.close()
        silent.close()

    def test_killed_and_started_again_on_the_same_port(self):
        server = Server()
        port = server.port
        self.assertEqual(server.get("/health").status, 200)
        server.stop(signal.SIGKILL)
        again = Server(port=("--port", str(port)))
        self.assertEqual(again.get("/health").status, 200)
        self.assertEqual(again.stop(), 0)

    def test_readiness_is_told_to_systemd(self):
        path = f"/tmp/superpoint-test-{os.getpid()}.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(20)
            try:
                server = Server(env={"NOTIFY_SOCKET": path})
                self.assertEqual(manager.recv(100), b"READY=1")
                self.assertEqual(server.get("/health").status, 200)
                self.assertEqual(server.stop(), 0)
                self.assertEqual(manager.recv(100), b"STOPPING=1")
            finally:
                os.unlink(path)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_unit_file(self):
        with open("packaging/systemd/superpoint.service") as f:
            text = f.read().replace("/usr/bin/superpoint", os.path.abspath(PROGRAM))
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/superpoint.service"
            with open(path, "w") as f:
                f.write(text)
            found = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
            self.assertEqual((found.returncode, found.stderr), (0, ""))
            # of 100, where 0 is the most confined
            found = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", path], capture_output=True, text=True)
            self.assertEqual(found.returncode, 0, found.stdout + found.stderr)

    def test_config_file(self):
        path = f"/tmp/superpoint-test-{os.getpid()}.conf"
        with open(path, "w") as f:
            f.write("# limits\nmax_queue = 7\n\nkeep-alive-timeout=2.5 # seconds\nmodel-name = mine\n")
        try:
            server = Server("--config", path)
            limits = server.get("/info").json()["limits"]
            self.assertEqual((limits["max_queue"], limits["keep_alive_timeout"]), (7, 2.5))
            self.assertEqual(server.get("/v1/models").json()["data"][0]["id"], "mine")
            self.assertEqual(server.stop(), 0)
            with open(path, "a") as f:
                f.write("nonsense\n")
            server = Server("--config", path, wait=False)
            self.assertEqual(server.process.wait(20), 2)
            self.assertIn("line 6", server.process.stderr.read().decode())
            server.process.communicate()
        finally:
            os.unlink(path)

    def test_same_bytes_whatever_the_threads_and_the_neighbours(self):
        picture = b64(noise(96, 80))
        answers = set()
        for threads in ("1", "2", "3"):
            server = Server("--threads", threads)

            def ask(fields):
                found = server.predict(**fields).json()
                found = found["results"][1] if "results" in found else found
                return json.dumps([found[k] for k in ("keypoints", "scores", "descriptors", "scale")])

            answers.add(ask({"image": picture}))
            answers.add(ask({"images": [b64(checkers()), picture, b64(checkers(80))]}))
            together = []
            workers = [threading.Thread(target=lambda: together.append(ask({"image": picture}))) for _ in range(8)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            self.assertEqual(len(together), 8)
            answers.update(together)
            self.assertEqual(server.stop(), 0)
        self.assertEqual(len(answers), 1)


if __name__ == "__main__":
    unittest.main()

"""Limits and deadlines at their edges, and what the service does when something is full, slow or broken."""
import json
import os
import resource
import socket
import threading
import time
import unittest

from harness import Server, ServerTest, b64, blank, checkers, noise, read_answer, wait_until

def body_of(picture, **fields):
    return json.dumps({"image": b64(picture), "return_descriptors": False, **fields}).encode()


def request_of(body, *headers):
    return "\r\n".join(("POST /predict HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}",
                        *headers)).encode() + b"\r\n\r\n" + body


class Deadlines(ServerTest):
    options = ("--header-timeout", "0.6", "--body-timeout", "0.8", "--keep-alive-timeout", "0.7")

    def closes_within(self, sock, low, high):
        start = time.monotonic()
        answer = read_answer(sock)
        took = time.monotonic() - start
        self.assertTrue(low <= took <= high, took)
        return answer

    def test_headers_that_never_end(self):
        for first in (b"G", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\0\0\0\r\n"):
            with self.server.connect() as sock:
                sock.sendall(first)
                self.assertError(self.closes_within(sock, 0.4, 7.5), 408, "headers")

    def test_slow_headers_do_not_earn_time(self):
        with self.server.connect() as sock:
            start = time.monotonic()
            sock.sendall(b"GET /health HTTP/1.1\r\n")
            with self.assertRaises(OSError):
                for i in range(100):
                    sock.sendall(b"X-%d: y\r\n" % i)
                    time.sleep(0.05)
            self.assertLess(time.monotonic() - start, 8)

    def test_body_that_never_comes(self):
        with self.server.connect() as sock:
            sock.sendall(request_of(b"x" * 100)[:-50])
            self.assertError(self.closes_within(sock, 0.5, 9), 408, "body")

    def test_slow_body(self):
        body = body_of(noise())
        with self.server.connect() as sock:
            sock.sendall(request_of(body)[:-len(body)])
            answer = None
            try:
                for i in range(100):
                    sock.sendall(body[i:i + 1])
                    time.sleep(0.05)
            except OSError:
                pass
            try:
                answer = read_answer(sock)
            except OSError:
                return  # reset after the answer had been sent
            self.assertError(answer, 408)

    def test_silent_and_idle_connections_are_closed_without_a_word(self):
        with self.server.connect() as sock:
            self.assertIsNone(self.closes_within(sock, 0.4, 7.5))
        with self.server.connect() as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_answer(sock).status, 200)
            self.assertIsNone(self.closes_within(sock, 0.5, 8))

    def test_second_request_has_a_header_deadline_of_its_own(self):
        with self.server.connect() as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_answer(sock).status, 200)
            time.sleep(0.3)
            sock.sendall(b"GET /health HTTP/1.1\r\n")
            self.assertError(self.closes_within(sock, 0.3, 7.5), 408)

    def test_slow_loris(self):
        start = time.monotonic()
        loris = [self.server.connect() for _ in range(500)]
        try:
            for sock in loris:
                sock.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nX-")
            self.assertEqual(self.server.predict(image=b64(checkers())).status, 200)
            self.assertLess(time.monotonic() - start, 20)
            self.assertTrue(wait_until(lambda: self.server.metric("connections_open") < 5))
        finally:
            for sock in loris:
                sock.close()


class WriteDeadline(ServerTest):
    options = ("--write-timeout", "0.8", "--resize", "512x512")

    def test_a_client_that_does_not_read_is_closed(self):
        body = body_of(noise(512, 512), return_descriptors=True, keypoint_threshold=0, nms_radius=0, max_keypoints=20000)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", self.server.port))
        with sock:
            sock.sendall(request_of(body))
            self.assertTrue(wait_until(lambda: self.server.metric("timeouts_total") == 1, 15))
            got = 0
            try:
                while piece := sock.recv(1 << 20):
                    got += len(piece)
            except OSError:
                pass
            self.assertLess(got, 12_000_000)
        self.assertAlive()


class Queue(ServerTest):
    """The engine's thread is held still meanwhile, so that nothing depends on how fast it is."""

    options = ("--max-queue", "3", "--request-timeout", "120")

    def fill(self, count, places=3):
        request = request_of(body_of(noise()))
        socks = [self.server.connect(120) for _ in range(count)]
        for i, sock in enumerate(socks):
            sock.sendall(request)
            self.assertTrue(wait_until(lambda: self.server.metric("queue_depth") == min(i + 1, places)))
        return socks


class FullQueue(Queue):
    def test_full_queue_refuses_and_health_answers(self):
        with self.server.frozen():
            socks = self.fill(12)
            for sock in socks[3:]:
                answer = read_answer(sock)
                self.assertError(answer, 503, "queue is full")
                self.assertGreaterEqual(int(answer.header("retry-after")), 1)
            for path in ("/health", "/livez", "/readyz", "/metrics", "/info"):
                self.assertEqual(self.server.get(path).status, 200)
        self.assertEqual([read_answer(sock).status for sock in socks[:3]], [200] * 3)
        for sock in socks:
            sock.close()
        self.assertTrue(wait_until(lambda: self.server.metric("queue_depth") == 0))

    # 82
    def test_two_hundred_at_once(self):
        request = request_of(body_of(checkers()))
        socks = [self.server.connect(120) for _ in range(200)]
        for sock in socks:
            sock.sendall(request)
        health = []
        for _ in range(20):
            start = time.monotonic()
            self.assertEqual(self.server.get("/health").status, 200)
            health.append(time.monotonic() - start)
        answers = [read_answer(sock) for sock in socks]
        for sock in socks:
            sock.close()
        self.assertEqual({a.status for a in answers} - {503}, {200})
        self.assertGreaterEqual([a.status for a in answers].count(200), 3)
        for answer in answers:
            if answer.status == 503:
                self.assertTrue(answer.header("retry-after"))
        self.assertLess(sorted(health)[10], 3)


class ClientsThatLeave(Queue):
    """A client that left is dropped where others wait behind it. One worker keeps their order, and of two behind it
    at most one is in the worker's hands, so that another always waits."""

    options = ("--max-queue", "4", "--request-timeout", "120", "--workers", "1")

    def test_they_are_dropped(self):
        before, gone = self.server.metric("pictures_total"), self.server.metric("clients_gone_total")
        with self.server.frozen():
            first, leaves, *behind = self.fill(4, places=4)
            leaves.close()
            time.sleep(0.2)
        self.assertEqual([read_answer(sock).status for sock in (first, *behind)], [200] * 3)
        for sock in (first, *behind):
            sock.close()
        self.assertTrue(wait_until(lambda: self.server.metric("queue_depth") == 0))
        self.assertEqual(self.server.metric("clients_gone_total") - gone, 1)
        self.assertEqual(self.server.metric("pictures_total") - before, 3)


class StuckEngine(ServerTest):
    options = ("--engine-timeout", "1", "--request-timeout", "60")

    def test_health_says_so_and_comes_back(self):
        with open("sample_data/bridge.jpg", "rb") as f:
            picture = f.read()
        request = (b"POST /predict?resize=1600x1200&return_descriptors=false HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(picture)) + picture
        with self.server.connect(60) as sock:
            with self.server.stuck(sock, request):
                self.assertTrue(wait_until(lambda: self.server.get("/health").status == 503, 30))
                self.assertIn("has not come back", self.server.get("/health").json()["detail"])
                for path in ("/readyz", "/v2/health/ready", "/v2/models/superpoint/ready"):
                    self.assertEqual(self.server.get(path).status, 503)
                self.assertEqual(self.server.get("/livez").status, 200)
                self.assertError(read_answer(sock), 503)
                refused = self.server.predict(image=b64(blank()))
                self.assertError(refused, 503, "engine")
                self.assertTrue(refused.header("retry-after"))
        self.assertTrue(wait_until(lambda: self.server.get("/health").status == 200, 100, 0.1))
        self.assertTrue(wait_until(lambda: self.server.predict(image=b64(blank())).status == 200, 60, 0.1))


class RequestDeadline(ServerTest):
    options = ("--request-timeout", "1", "--max-queue", "50")

    def test_what_cannot_be_served_in_time_is_told_so(self):
        request = request_of(body_of(noise()))
        with self.server.frozen():
            socks = [self.server.connect(60) for _ in range(10)]
            for sock in socks:
                sock.sendall(request)
            for sock in socks:
                answer = read_answer(sock)
                self.assertError(answer, 503, "request")
                self.assertTrue(answer.header("retry-after"))
                sock.close()
        self.assertTrue(wait_until(lambda: self.server.predict(image=b64(blank())).status == 200, 60, 0.1))


class Connections(ServerTest):
    options = ("--max-connections", "20")

    def test_idle_connections_make_room(self):
        idle = []
        for _ in range(60):
            sock = self.server.connect()
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_answer(sock).status, 200)
            idle.append(sock)
        self.assertLessEqual(self.server.metric("connections_open"), 22)
        for sock in idle:
            sock.close()

    def test_storm_of_connections(self):
        for _ in range(20):
            socks = []
            for _ in range(100):
                sock = self.server.connect()
                try:
                    sock.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
                    sock.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                socks.append(sock)
            for sock in socks:
                sock.close()
        self.assertTrue(wait_until(lambda: self.server.get("/health").status == 200))
        self.assertTrue(wait_until(lambda: self.server.metric("connections_open") < 5))

    def test_unfinished_headers_make_room(self):
        socks = [self.server.connect() for _ in range(60)]
        for sock in socks:
            try:
                sock.sendall(b"GET ")
            except OSError:
                pass
        self.assertTrue(wait_until(lambda: self.server.get("/health").status == 200))
        for sock in socks:
            sock.close()


class Bodies(ServerTest):
    options = ("--max-body-bytes", "100000", "--max-body-memory", "250000", "--max-queue", "100")

    def test_edge_of_a_body(self):
        fixed = len(body_of(blank(), pad=""))
        for extra, status in ((0, 200), (1, 413)):
            body = body_of(blank(), pad="x" * (100000 - fixed + extra))
            self.assertEqual(len(body), 100000 + extra)
            self.assertEqual(self.server.post("/predict", body).status, status)

    def test_bodies_of_all_requests(self):
        socks = []
        for _ in range(5):
            sock = self.server.connect()
            sock.sendall(request_of(b" " * 100000)[:-20000])
            socks.append(sock)
        self.assertTrue(wait_until(lambda: self.server.metric("body_bytes") >= 200000))
        statuses = []
        for sock in socks:
            sock.settimeout(0.3)
            try:
                answer = read_answer(sock)
                statuses.append(answer and answer.status)
            except (TimeoutError, OSError):
                pass
            sock.close()
        self.assertIn(503, statuses)
        self.assertTrue(wait_until(lambda: self.server.metric("body_bytes") == 0))
        self.assertEqual(self.server.predict(image=b64(blank())).status, 200)


class Faults(unittest.TestCase):
    def test_out_of_file_descriptors(self):
        server = Server("--header-timeout", "3", preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        socks = []
        refused = 0
        for _ in range(120):
            sock = server.connect()
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-")
            socks.append(sock)
        for sock in socks:
            sock.settimeout(0.02)
            try:
                answer = read_answer(sock)
                refused += answer is not None and answer.status == 503
            except OSError:
                pass
        self.assertGreater(refused, 0)
        for sock in socks:
            sock.close()
        self.assertTrue(wait_until(lambda: server.get("/health").status == 200))
        self.assertEqual(server.predict(image=b64(checkers())).status, 200)
        self.assertEqual(server.stop(), 0)

    def test_full_disk_for_the_log(self):
        server = Server(log="/dev/full")
        for _ in range(20):
            self.assertEqual(server.predict(image=b64(blank())).status, 200)
        self.assertTrue(wait_until(lambda: server.metric("log_dropped_total") >= 20))
        self.assertEqual(server.stop(), 0)

    def test_log_that_nobody_reads(self):
        server = Server(log="-")
        with server.connect() as sock:
            for _ in range(3000):
                sock.sendall(b"GET /health?%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"x" * 250))
                self.assertEqual(read_answer(sock).status, 200)
        self.assertEqual(server.predict(image=b64(blank())).status, 200)
        server.process.send_signal(15)
        self.assertEqual(server.process.wait(15), 0)
        server.process.communicate()

    def test_log_lines(self):
        path = f"/tmp/superpoint-test-{os.getpid()}.log"
        try:
            server = Server(log=path)
            server.request("GET", '/health?"\\', headers={"X-Request-Id": "me"})
            server.predict(image=b64(blank()))
            server.raw(b"nonsense\r\n\r\n")
            self.assertEqual(server.stop(), 0)
            with open(path) as f:
                lines = [json.loads(line) for line in f]
            self.assertEqual([(x["method"], x["status"]) for x in lines], [("GET", 200), ("POST", 200), ("-", 400)])
            self.assertEqual((lines[0]["target"], lines[0]["id"]), ('/health?"\\', "me"))
            self.assertGreater(lines[1]["bytes_in"], 100)
        finally:
            if os.path.exists(path):
                os.unlink(path)


if __name__ == "__main__":
    unittest.main()

"""HTTP itself: what is taken, what is refused and how, over raw sockets."""
import json
import socket
import time
import unittest

from harness import ServerTest, b64, blank, read_answer, read_answer_exactly, wait_until


class Protocol(ServerTest):
    options = ("--max-body-bytes", "200000")

    def setUp(self):
        self.body = json.dumps({"image": b64(blank()), "return_descriptors": False}).encode()

    def head(self, *lines):
        return "\r\n".join(("POST /predict HTTP/1.1", "Host: x", "Content-Type: application/json") + lines).encode() + b"\r\n\r\n"

    # 60
    def test_chunked(self):
        chunks = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(self.body[i:i + 100]), self.body[i:i + 100])
                          for i in range(0, len(self.body), 100))
        answer = self.server.raw(self.head("Transfer-Encoding: chunked") + chunks + b"0\r\nTrailer: x\r\n\r\n")
        self.assertEqual(answer.status, 200)

    def test_chunked_over_the_cap(self):
        with self.server.connect() as sock:
            sock.sendall(self.head("Transfer-Encoding: chunked"))
            answer = None
            try:
                for _ in range(30):
                    sock.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
            except OSError:
                pass
            answer = read_answer(sock)
        self.assertError(answer, 413, "max_body_bytes")
        self.assertEqual(answer.header("connection"), "close")

    def test_bad_chunks(self):
        for chunk in (b"zz\r\n", b"-1\r\n", b"5\r\nabcdefgh\r\n", b"ffffffffffffffffff\r\n"):
            answer = self.server.raw(self.head("Transfer-Encoding: chunked") + chunk)
            self.assertIn(answer.status, (400, 413), chunk)
        self.assertAlive()

    # 61, 62
    def test_content_types(self):
        for kind in (None, "text/plain", "application/x-www-form-urlencoded", "application/vnd.x+json",
                     "application/json; charset=latin-1", "APPLICATION/JSON", "application/octet-stream"):
            self.assertEqual(self.server.post("/predict", self.body, kind).status, 200, kind)
        for kind in (None, "text/plain", "application/x-www-form-urlencoded"):
            self.assertError(self.server.post("/predict", b"a=1&b=2", kind), 415)
            self.assertEqual(self.server.post("/predict", blank(), kind).status, 200)
        for kind in ("application/pdf", "text/html", "video/mp4", "multipart/mixed; boundary=x", "nonsense"):
            self.assertError(self.server.post("/predict", self.body, kind), 415, "application/json")
        self.assertError(self.server.post("/predict", self.body, "multipart/form-data"), 415, "boundary")

    # 63
    def test_content_encoding(self):
        self.assertError(self.server.post("/predict", self.body, headers={"Content-Encoding": "gzip"}), 415, "gzip")
        self.assertEqual(self.server.post("/predict", self.body, headers={"Content-Encoding": "identity"}).status, 200)

    # 64
    def test_empty_body(self):
        self.assertError(self.server.post("/predict", b""), 400, "empty")
        self.assertError(self.server.post("/predict", b"", "image/png"), 400, "empty")
        self.assertError(self.server.raw(b"POST /predict HTTP/1.1\r\nHost: x\r\n\r\n"), 411, "Content-Length")

    # 65
    def test_http_1_0(self):
        answer = self.server.raw(b"GET /health HTTP/1.0\r\n\r\n")
        self.assertEqual(answer.status, 200)
        with self.server.connect() as sock:
            sock.sendall(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            self.assertEqual(read_answer(sock).status, 200)
            self.assertEqual(sock.recv(10), b"")

    # 67
    def test_expect(self):
        with self.server.connect() as sock:
            sock.sendall(self.head(f"Content-Length: {len(self.body)}", "Expect: 100-continue"))
            self.assertEqual(read_answer(sock).status, 100)
            sock.sendall(self.body)
            self.assertEqual(read_answer(sock).status, 200)
        answer = self.server.raw(self.head("Content-Length: 1000000", "Expect: 100-continue"))
        self.assertError(answer, 413)
        answer = self.server.raw(self.head(f"Content-Length: {len(self.body)}", "Expect: magic") + self.body)
        self.assertError(answer, 417)

    # 58
    def test_too_large_is_said_before_it_is_read(self):
        with self.server.connect() as sock:
            sock.sendall(self.head("Content-Length: 104857600"))
            start = time.monotonic()
            self.assertError(read_answer(sock), 413, "max_body_bytes")
            self.assertLess(time.monotonic() - start, 2)

    def test_refusal_arrives_though_the_client_goes_on_sending(self):
        for _ in range(20):
            with self.server.connect() as sock:
                sock.sendall(self.head("Content-Length: 104857600"))
                try:
                    for _ in range(20):
                        sock.sendall(b"x" * 65536)
                        time.sleep(0.001)
                except OSError:
                    self.fail("reset while sending")
                self.assertError(read_answer(sock), 413)

    # 68
    def test_host(self):
        self.assertError(self.server.raw(b"GET /health HTTP/1.1\r\n\r\n"), 400, "Host")
        self.assertError(self.server.raw(b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400, "Host")

    # 70
    def test_smuggling(self):
        cases = [
            ("Content-Length: 5", "Transfer-Encoding: chunked"),
            ("Transfer-Encoding: chunked", "Content-Length: 5"),
            ("Content-Length: 5", "Content-Length: 6"),
            ("Transfer-Encoding: gzip, chunked",),
            ("Transfer-Encoding: identity",),
            ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
            ("Content-Length : 5",),
            ("Content-Length: 5, 5",),
            ("Content-Length: +5",),
            ("Content-Length: -5",),
            ("Content-Length: 0x5",),
            ("Content-Length: abc",),
            ("Content-Length:",),
            ("Content-Length: 5 5",),
        ]
        for lines in cases:
            with self.server.connect() as sock:
                sock.sendall(self.head(*lines) + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = read_answer(sock)
                self.assertIsNotNone(answer, lines)
                self.assertIn(answer.status, (400, 413), lines)
                rest = b""
                while piece := sock.recv(65536):
                    rest += piece
                self.assertEqual(rest, b"", lines)
        self.assertIn(self.server.raw(self.head("Content-Length: 99999999999999999999999") + b"x").status, (400, 413))
        self.assertAlive()

    # 72, 73
    def test_long_targets_and_headers(self):
        self.assertEqual(self.server.get("/health?" + "x" * 8000).status, 200)
        self.assertEqual(self.server.get("/health?" + "x" * 8185).status, 414)
        self.assertEqual(self.server.get("/" + "a" * 70000).status, 414)
        self.assertEqual(self.server.get("/" + "a" * 300000).status, 414)
        self.assertEqual(self.server.get("/health", {"X-Long": "x" * 30000}).status, 200)
        self.assertEqual(self.server.get("/health", {"X-Long": "x" * 33000}).status, 431)
        self.assertEqual(self.server.get("/health", {"X-Long": "x" * 200000}).status, 431)
        self.assertEqual(self.server.get("/health", {f"X-{i}": "1" for i in range(99)}).status, 200)
        self.assertEqual(self.server.get("/health", {f"X-{i}": "1" for i in range(100)}).status, 431)
        self.assertEqual(self.server.get("/health", {f"X-{i}": "1" for i in range(5000)}).status, 431)
        self.assertAlive()

    def test_what_the_library_refuses_has_our_body_too(self):
        get = b"GET /health HTTP/1.1\r\nHost: x\r\n"
        post = b"POST /predict HTTP/1.1\r\nHost: x\r\n"
        for data, status, word in (
                (get + b"X: " + b"x" * 200000 + b"\r\n\r\n", 431, "max_header_bytes"),
                (get + b"".join(b"X-%d: 1\r\n" % i for i in range(5000)) + b"\r\n", 431, "max_header_bytes"),
                (b"GET /" + b"a" * 300000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "max_target_bytes"),
                (b"a" * 300000, 414, "max_target_bytes"),
                (post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "well-formed"),
                (post + b"Content-Length: abc\r\n\r\n", 400, "well-formed"),
                (post + b"Content-Length: 99999999999999999999999\r\n\r\n", 413, "max_body_bytes"),
                (get + b"no colon\r\n\r\n", 400, "well-formed"), (get + b"A\0B: c\r\n\r\n", 400, "well-formed"),
                (b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n", 505, "version")):
            with self.server.connect() as sock:
                sock.sendall(data)
                answer = read_answer(sock)
                self.assertError(answer, status, word)
                self.assertEqual(answer.header("connection"), "close")
                self.assertEqual(sock.recv(10), b"", data[:80])
        self.assertAlive()

    def test_what_is_behind_a_request_and_no_request(self):
        get = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        for together in (True, False):
            with self.server.connect() as sock:
                sock.sendall(get + (b"hello\r\n\r\n" if together else b""))
                self.assertEqual(read_answer_exactly(sock).status, 200)
                if not together:
                    sock.sendall(b"hello\r\n\r\n")
                self.assertError(read_answer(sock), 400, "not an HTTP request")
                self.assertEqual(sock.recv(10), b"")
        with self.server.connect() as sock:  # what follows an answer that ends the connection is nobody's business
            sock.sendall(get.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + b"hello\r\n\r\n")
            self.assertEqual(read_answer_exactly(sock).status, 200)
            self.assertEqual(sock.recv(10), b"")
        with self.server.connect() as sock:  # empty lines between requests are not
            sock.sendall(b"\r\n" + get + b"\r\n" + get + b"\r\n")
            for _ in range(2):
                self.assertEqual(read_answer_exactly(sock).status, 200)
            sock.settimeout(0.5)
            self.assertRaises(TimeoutError, sock.recv, 10)

    def test_lines_that_end_or_rename_headers(self):
        get = "GET /health HTTP/1.1\r\nHost: x\r\n"
        hidden = "GET /info HTTP/1.1\r\nHost: x\r\n\r\n"
        for head in (get + ": v\r\n\r\n", get + ":\r\n\r\n", get + ": v\r\n" + hidden, get + "A: b\r\n c\r\n\r\n",
                     get + "A: b\r\n\tc: d\r\n\r\n", get.replace("GET /health", "POST /predict") +
                     "Transfer: chunked\r\n -Encoding\r\n\r\n0\r\n\r\n" + hidden):
            with self.server.connect() as sock:
                sock.sendall(head.encode())
                self.assertError(read_answer_exactly(sock), 400)
                self.assertEqual(sock.recv(10), b"", head)
        for fine in ("A:\r\n", "A: b  \r\n", "A:\t b\t\r\n", "A: :\r\n", "A: b: c\r\n"):
            self.assertEqual(self.server.raw((get + fine + "\r\n").encode()).status, 200, fine)
            self.assertEqual(self.server.raw((get + fine + "B: c\r\n\r\n").encode()).status, 200, fine)
        self.assertEqual(self.server.raw(b"GET /health HTTP/1.1\nHost: x\nA:\n\n").status, 200)

    # 74, 77
    def test_forms_of_targets(self):
        for target in ("/health", "/%68ealth", "/health?x=1", "http://localhost/health", "HTTP://other:99/health?y",
                       "/health/"):
            self.assertEqual(self.server.get(target).status, 200, target)
        self.assertEqual(self.server.post("/predict/", self.body).status, 200)
        for target in ("/a b", "/health%00", "/health%zz", "/%", "health", "*", "/health#x", "/\x01"):
            answer = self.server.get(target)
            self.assertIsNotNone(answer, target)
            self.assertIn(answer.status, (400, 404), target)

    # 76, 78
    def test_methods(self):
        answer = self.server.request("OPTIONS", "/predict")
        self.assertEqual((answer.status, answer.header("allow"), answer.body), (204, "POST, OPTIONS", b""))
        for method in ("GET", "PUT", "DELETE", "PATCH", "HEAD", "BREW"):
            answer = self.server.request(method, "/predict")
            self.assertEqual((answer.status, answer.header("allow")), (405, "POST, OPTIONS"), method)
        answer = self.server.request("POST", "/health", b"")
        self.assertEqual((answer.status, answer.header("allow")), (405, "GET, HEAD, OPTIONS"))
        self.assertError(self.server.get("/nothing/here"), 404, "/nothing/here")
        self.assertError(self.server.get("/predictx"), 404)
        answer = self.server.request("HEAD", "/health")
        self.assertEqual((answer.status, answer.header("content-length")), (200, "16"))

    # 81
    def test_upgrade_is_ignored(self):
        answer = self.server.get("/health", {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c",
                                             "HTTP2-Settings": "AAMAAABkAAQAAP__"})
        self.assertEqual(answer.status, 200)

    def test_what_is_not_http(self):
        for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\n" * 40, b"hello\r\n\r\n", b"\r\n\r\nquit\r\n\r\n",
                     b"GET\r\n\r\n", b"GET /health\r\n\r\n", b"GET /health HTTP/9.9\r\n\r\n", b"GET /health HTTX/1.1\r\n\r\n",
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /health HTTP/1.1\r\nbad header\r\n\r\n",
                     b"GET /health HTTP/1.1\r\nHost: x\r\nA\x00B: c\r\n\r\n"):
            with self.server.connect() as sock:
                sock.sendall(data)
                answer = read_answer(sock)
                self.assertIsNotNone(answer, data)
                self.assertIn(answer.status, (400, 505), data)
                self.assertEqual(sock.recv(10), b"", data)
        self.assertAlive()

    def test_keep_alive_and_pipelining(self):
        request = self.head(f"Content-Length: {len(self.body)}") + self.body
        with self.server.connect() as sock:
            for _ in range(3):
                sock.sendall(request)
                self.assertEqual(read_answer(sock).status, 200)
            one = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
            sock.sendall(one * 3)
            data = b""
            while data.count(b'{"status":"ok"}\n') < 3:
                data += sock.recv(65536)
            self.assertEqual(data.count(b"HTTP/1.1 200"), 3)
        with self.server.connect() as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertEqual(read_answer(sock).header("connection"), "close")
            self.assertEqual(sock.recv(10), b"")

    def test_bytes_one_at_a_time(self):
        with self.server.connect() as sock:
            for byte in b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n":
                sock.sendall(bytes([byte]))
            self.assertEqual(read_answer(sock).status, 200)

    def test_half_closed_client_gets_its_answer(self):
        for i in range(400):  # at every moment of the request's way
            with self.server.connect() as sock:
                sock.sendall(self.head(f"Content-Length: {len(self.body)}") + self.body)
                until = time.perf_counter() + i * 4e-6
                while time.perf_counter() < until:
                    pass
                sock.shutdown(socket.SHUT_WR)
                self.assertEqual(read_answer(sock).status, 200, i)

    def test_clients_that_end_in_the_middle_are_let_go(self):
        for _ in range(200):  # data and end in one packet, or not: both happen
            with self.server.connect() as sock:
                sock.sendall(self.head("Content-Length: 100") + b"{")
                sock.shutdown(socket.SHUT_WR)
        self.assertTrue(wait_until(lambda: self.server.metric("connections_open") < 5, 5))

    def test_request_id(self):
        self.assertEqual(self.server.get("/health", {"X-Request-Id": "abc-123"}).header("x-request-id"), "abc-123")
        first, second = (self.server.get("/health").header("x-request-id") for _ in range(2))
        self.assertRegex(first, "^[0-9a-f]{16}$")
        self.assertNotEqual(first, second)
        answer = self.server.get("/health", {"X-Request-Id": "a<script>"})
        self.assertNotIn("script", answer.header("x-request-id"))
        self.assertNotEqual(self.server.get("/health", {"X-Request-Id": "a" * 200}).header("x-request-id"), "a" * 200)

    def test_ten_thousand_malformed_requests(self):
        state = 12345
        base = self.head(f"Content-Length: {len(self.body)}") + self.body
        sent = 0
        while sent < 10000:
            socks = []
            for _ in range(100):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                data = bytearray(base[:60 + state % 200])
                for k in range(1 + state % 7):
                    data[(state >> (k * 5)) % len(data)] = (state >> (k * 7)) & 0xFF
                sock = self.server.connect()
                try:
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                socks.append(sock)
                sent += 1
            for sock in socks:
                sock.close()
        self.assertTrue(wait_until(lambda: self.server.get("/health").status == 200, 30))
        self.assertTrue(wait_until(lambda: self.server.metric("connections_open") < 10, 30))
        self.assertEqual(self.server.post("/predict", self.body).status, 200)


if __name__ == "__main__":
    unittest.main()

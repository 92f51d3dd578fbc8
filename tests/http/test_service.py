"""What the service tells of itself, who may call it, and HTTPS."""
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest

from harness import Server, ServerTest, b64, blank, checkers, read_answer


class Tells(ServerTest):
    def test_info(self):
        info = self.server.get("/info").json()
        self.assertEqual(info["model"]["parameters"], 1300865)
        self.assertEqual(set(info["model"]["weights"]), {"id", "revision", "sha256", "licence"})
        self.assertRegex(info["model"]["weights"]["sha256"], "^[0-9a-f]{64}$")
        self.assertEqual(info["frame"], {"height": 64, "width": 64})
        self.assertEqual(set(info["serving_path"]), {"traced", "device_nms", "nms_radius_traced", "fused_stages"})
        self.assertEqual({k: info["defaults"][k] for k in ("max_keypoints", "keypoint_threshold", "nms_radius", "return_descriptors",
                                                           "channel", "border", "coordinates", "subpixel")},
                         {"max_keypoints": 1024, "keypoint_threshold": 0.005, "nms_radius": 4, "return_descriptors": True,
                          "channel": "red", "border": 4, "coordinates": "corner", "subpixel": False})
        for key in ("engine", "device", "precision", "version", "provenance"):
            self.assertIn(key, info)

    def test_every_limit_has_a_flag_and_a_place_in_info(self):
        program = os.environ.get("SUPERPOINT", "build/bin/superpoint")
        text = subprocess.run([program, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        limits = self.server.get("/info").json()["limits"]
        flags = {m.replace("-", "_") for m in re.findall(r"--((?:max-[a-z-]+|[a-z-]+-timeout))", text)}
        self.assertEqual(set(limits), flags - {"max_keypoints"})
        self.assertEqual(limits["max_body_bytes"], 32 << 20)
        self.assertEqual(limits["max_pixels"], 64 << 20)

    def test_models(self):
        self.assertEqual(self.server.get("/v1/models").json(), {
            "object": "list", "data": [{"id": "superpoint", "object": "model", "owned_by": "superpoint"}]})

    def test_health(self):
        answer = self.server.get("/health")
        self.assertEqual((answer.status, answer.body), (200, b'{"status":"ok"}\n'))
        for path in ("/healthz", "/livez", "/readyz"):
            self.assertEqual(self.server.get(path).status, 200)

    def test_metrics_add_up(self):
        before = self.server.metric("pictures_total")
        for _ in range(3):
            self.server.predict(image=b64(checkers()))
        self.server.predict(image="")
        text = self.server.get("/metrics").body.decode()
        self.assertEqual(self.server.metric("pictures_total") - before, 3)
        samples = {}
        for line in text.splitlines():
            if line.startswith("#"):
                self.assertRegex(line, r"^# (HELP|TYPE) superpoint_[a-z_]+ .+$")
                continue
            name, value = re.fullmatch(r'(superpoint_[a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)+\})?) (\S+)', line).groups()
            self.assertNotIn(name, samples)
            samples[name] = float(value)
        self.assertEqual(samples['superpoint_requests_total{route="/predict",status="400"}'], 1)
        self.assertGreater(samples["superpoint_keypoints_total"], 0)
        for stage in ("queue", "preprocess", "forward", "postprocess", "encode", "total"):
            count = samples[f'superpoint_stage_seconds_count{{stage="{stage}"}}']
            self.assertEqual(samples[f'superpoint_stage_seconds_bucket{{stage="{stage}",le="+Inf"}}'], count)
            self.assertGreaterEqual(count, 3)
        self.assertTrue(any(name.startswith("superpoint_build_info{") for name in samples))


class Tokens(unittest.TestCase):
    def test_bearer(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("first-token\nsecond\n")
            f.flush()
            server = Server("--token-file", f.name)
            body = json.dumps({"image": b64(blank())}).encode()
            for header, status in ((None, 401), ("Bearer wrong", 401), ("Bearer first-toke", 401), ("Bearer first-tokenx", 401),
                                   ("Basic first-token", 401), ("Bearer ", 401), ("Bearer first-token", 200),
                                   ("bearer second", 200)):
                headers = {"Authorization": header} if header else {}
                answer = server.post("/predict", body, headers=headers)
                self.assertEqual(answer.status, status, header)
                self.assertEqual(answer.header("www-authenticate"), "Bearer" if status == 401 else None)
            for path in ("/info", "/v1/models", "/metrics"):
                self.assertEqual(server.get(path).status, 401)
                self.assertEqual(server.get(path, {"Authorization": "Bearer second"}).status, 200)
            for path in ("/health", "/livez", "/readyz"):
                self.assertEqual(server.get(path).status, 200)
            self.assertEqual(server.stop(), 0)

    def test_bad_token_files(self):
        with tempfile.NamedTemporaryFile("w") as f:
            for path in (f.name, "/nonexistent/tokens"):
                server = Server("--token-file", path, wait=False)
                self.assertNotEqual(server.process.wait(20), 0)
                self.assertIn("token", server.process.stderr.read().decode())
                server.process.communicate()


class Cors(unittest.TestCase):
    def test_cors(self):
        server = Server("--cors", "https://page.example")
        answer = server.request("OPTIONS", "/predict", headers={"Origin": "https://page.example",
                                                                "Access-Control-Request-Method": "POST"})
        self.assertEqual(answer.status, 204)
        self.assertEqual(answer.header("access-control-allow-origin"), "https://page.example")
        self.assertIn("POST", answer.header("access-control-allow-methods"))
        self.assertIn("Content-Type", answer.header("access-control-allow-headers"))
        self.assertEqual(server.get("/health").header("access-control-allow-origin"), "https://page.example")
        self.assertEqual(server.predict(image="").header("access-control-allow-origin"), "https://page.example")
        self.assertEqual(server.stop(), 0)
        server = Server()
        self.assertIsNone(server.get("/health").header("access-control-allow-origin"))
        self.assertEqual(server.stop(), 0)


@unittest.skipUnless(shutil.which("openssl"), "needs openssl to make a certificate")
class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cert, key = cls.folder.name + "/cert.pem", cls.folder.name + "/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
        cls.server = Server("--tls-certificate", cert, "--tls-key", key, "--header-timeout", "1", "--body-timeout", "1.5",
                            "--max-body-bytes", "400000")
        cls.context = ssl.create_default_context(cafile=cert)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.folder.cleanup()
        if code != 0:
            raise AssertionError(f"the server ended with {code}")

    def connect(self):
        return self.context.wrap_socket(self.server.connect(), server_hostname="localhost")

    def test_requests(self):
        self.assertIn("https://", "".join(self.server.lines))
        with self.connect() as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_answer(sock).status, 200)
            body = json.dumps({"image": b64(checkers()), "pad": "x" * 300000}).encode()
            sock.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            self.assertEqual(read_answer(sock).status, 200)

    def test_what_is_no_tls(self):
        with self.server.connect() as plain:
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                self.assertFalse((plain.recv(100) or b"").startswith(b"HTTP"))
            except ConnectionResetError:
                pass
        with self.server.connect() as silent:  # no handshake at all
            silent.settimeout(15)
            self.assertEqual(silent.recv(10), b"")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, OSError)):
            old.wrap_socket(self.server.connect(), server_hostname="localhost")

    def assertRefused(self, data, status, word):
        with self.connect() as sock:
            sock.sendall(data)
            answer = read_answer(sock)
            self.assertIsNotNone(answer, "closed without an answer")
            self.assertEqual(answer.status, status)
            self.assertIn(word, answer.json()["detail"])
            self.assertEqual(answer.header("connection"), "close")

    def test_refusals_past_the_library_arrive(self):
        post = b"POST /predict HTTP/1.1\r\nHost: x\r\n"
        for _ in range(3):
            self.assertRefused(post + b"Content-Length: 100\r\n\r\n{", 408, "body")
            self.assertRefused(post + b"X-Never: en", 408, "headers")
            self.assertRefused(post + b"Transfer-Encoding: chunked\r\n\r\n" + (b"4000\r\n" + b" " * 0x4000 + b"\r\n") * 30,
                               413, "max_body_bytes")
            self.assertRefused(post + b"no colon\r\n\r\n", 400, "well-formed")

    def test_wrong_files(self):
        for cert, key in (("/nonexistent", "/nonexistent"), ("/etc/hostname", "/etc/hostname")):
            server = Server("--tls-certificate", cert, "--tls-key", key, wait=False)
            self.assertEqual(server.process.wait(20), 1)
            server.process.communicate()


if __name__ == "__main__":
    unittest.main()

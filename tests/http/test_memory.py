"""Every allocation of a request fails in turn: the answer is a clean error or none, and the server goes on."""
import json
import mmap
import os
import struct
import tempfile
import unittest

from harness import Server, b64, checkers, noise, read_answer

SHIM = os.environ.get("FAIL_MALLOC_LIBRARY", "")


@unittest.skipUnless(os.path.exists(SHIM), "needs the library made from fail_malloc.c")
class Memory(unittest.TestCase):
    def setUp(self):
        self.file = tempfile.NamedTemporaryFile()
        self.file.write(struct.pack("<ii", -1, 0) + bytes(4088))
        self.file.flush()
        self.page = mmap.mmap(self.file.fileno(), 4096)
        self.server = Server("--threads", "1", "--workers", "2", env={"LD_PRELOAD": SHIM, "FAIL_MALLOC": self.file.name})

    def tearDown(self):
        self.page[0:4] = struct.pack("<i", -1)
        self.assertEqual(self.server.stop(), 0)
        self.file.close()

    def counted(self):
        return struct.unpack("<i", self.page[4:8])[0]

    def every_site(self, request):
        with self.server.connect() as sock:  # warm: what is made once is there
            for _ in range(3):
                sock.sendall(request)
                self.assertEqual(read_answer(sock).status, 200)
        before = self.counted()
        with self.server.connect() as sock:
            sock.sendall(request)
            expected = read_answer(sock)
        sites = self.counted() - before + 3
        seen = {}
        for site in range(sites):
            self.page[0:4] = struct.pack("<i", site)
            answer = None
            try:
                with self.server.connect() as sock:
                    sock.sendall(request)
                    answer = read_answer(sock)
            except OSError:
                pass
            self.page[0:4] = struct.pack("<i", -1)
            status = answer.status if answer else "closed"
            seen[status] = seen.get(status, 0) + 1
            self.assertIn(status, (200, 500, 503, 431, "closed"), (site, answer and answer.body[:200]))
            if status in (500, 503):
                self.assertIn("detail", answer.json())
            health = self.server.get("/health")
            self.assertEqual(health.status, 200, site)
        self.assertGreater(sites, 10)
        self.assertGreater(seen.get(503, 0), 5, seen)
        # A connection that cannot be set up for want of memory is closed by the HTTP library itself.
        self.assertLessEqual(seen.get("closed", 0), 8, seen)
        with self.server.connect() as sock:
            sock.sendall(request)
            again = read_answer(sock)
        if expected.header("content-type") == "application/json":
            first, second = expected.json(), again.json()
            first.pop("timing_ms", None), second.pop("timing_ms", None)
            self.assertEqual(first, second)
        print(f"{sites} allocations: {seen}")

    def request(self, path, body, kind, *headers):
        return "\r\n".join((f"POST {path} HTTP/1.1", "Host: x", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers,
                            "")).encode() + b"\r\n" + body

    def test_json(self):
        body = json.dumps({"image": b64(noise()), "mask": b64(checkers()), "unknown": 1}).encode()
        self.every_site(self.request("/predict", body, "application/json"))

    def test_npz_of_a_batch(self):
        body = json.dumps({"images": [b64(noise()), b64(checkers())]}).encode()
        self.every_site(self.request("/predict", body, "application/json", "Accept: application/x-npz"))

    def test_raw(self):
        self.every_site(self.request("/predict", noise(), "image/png"))
        with open("sample_data/bridge.jpg", "rb") as f:
            self.every_site(self.request("/predict?max_keypoints=5", f.read(), "image/jpeg"))

    def test_kserve(self):
        body = json.dumps({"inputs": [{"name": "image", "datatype": "BYTES", "shape": [1], "data": [b64(noise())]}]}).encode()
        self.every_site(self.request("/v2/models/superpoint/infer", body, "application/json"))


if __name__ == "__main__":
    unittest.main()

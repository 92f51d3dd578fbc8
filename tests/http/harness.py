"""A running server, raw sockets, and pictures made by hand: what the HTTP tests share. Standard library only."""
import ast
import base64
import contextlib
import ctypes
import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import unittest
import zipfile
import zlib

PROGRAM = os.environ.get("SUPERPOINT", "build/bin/superpoint")
# The smallest frame with room for points, so that the tests measure the service and not the network.
SMALL = ["--resize", "64x64"]


def png(width, height, pixel, depth=8, colour=0):
    """A PNG; pixel(x, y) gives the bytes of one pixel (an int for 8-bit grey)."""
    rows = b""
    for y in range(height):
        row = b"".join(bytes([p]) if isinstance(p := pixel(x, y), int) else p for x in range(width))
        rows += b"\0" + row

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def checkers(side=64, cell=8):
    return png(side, side, lambda x, y: 255 * ((x // cell + y // cell) % 2))


def blank(width=64, height=64):
    return png(width, height, lambda x, y: 128)


def noise(width=64, height=64, seed=1):
    state = [seed]

    def pixel(x, y):
        state[0] = (state[0] * 1664525 + 1013904223) & 0xFFFFFFFF
        return state[0] >> 24

    return png(width, height, pixel)


def b64(data):
    return base64.b64encode(data).decode()


class Answer:
    def __init__(self, status, headers, body, raw):
        self.status, self.headers, self.body, self.raw = status, headers, body, raw

    def json(self):
        return json.loads(self.body)

    def header(self, name):
        return self.headers.get(name.lower())


def read_answer(sock, head=False):
    """One answer from a socket; None when it is closed before one."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return None
        data += piece
    top, rest = data.split(b"\r\n\r\n", 1)
    lines = top.decode("latin-1").split("\r\n")
    status = int(lines[0].split()[1])
    headers = {}
    for line in lines[1:]:
        name, value = line.split(":", 1)
        headers[name.strip().lower()] = value.strip()
    if status == 100:
        if rest:
            raise AssertionError("bytes behind 100 Continue")
        return Answer(status, headers, b"", data)
    length = 0 if head or status in (204, 304) else int(headers.get("content-length", "0"))
    while len(rest) < length:
        piece = sock.recv(65536)
        if not piece:
            raise AssertionError("closed inside a body")
        rest += piece
    return Answer(status, headers, rest, data)


def read_answer_exactly(sock):
    """One answer, and not a byte more, for a socket on which others may follow."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        piece = sock.recv(1)
        if not piece:
            return None
        data += piece
    length = int(re.search(rb"(?i)content-length: *(\d+)", data).group(1))
    body = b""
    while len(body) < length:
        body += sock.recv(length - len(body))
    return Answer(int(data.split()[1]), {}, body, data + body)


class Server:
    """`superpoint serve` on a free port."""

    def __init__(self, *options, small=True, env=None, port=("--port", "0"), wait=True, preexec=None, log="off"):
        command = [PROGRAM, "serve", *port, *(SMALL if small else []), "--access-log", log, *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE if log == "-" else subprocess.DEVNULL,
                                        env={**os.environ, **(env or {})}, preexec_fn=preexec)
        self.lines = []
        self.port = None
        if wait:
            self.wait_ready()

    def wait_ready(self):
        while True:
            line = self.process.stderr.readline().decode()
            if not line:
                raise AssertionError("the server did not start: " + "".join(self.lines))
            self.lines.append(line)
            found = re.search(r"Listening on https?://.*:(\d+) ", line)
            if found:
                self.port = int(found.group(1))
                return

    def connect(self, timeout=20):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def raw(self, data, timeout=20):
        """Send bytes, read one answer, close."""
        with self.connect(timeout) as sock:
            sock.sendall(data)
            return read_answer(sock, head=data.startswith(b"HEAD "))

    def request(self, method, target, body=None, headers=(), host="localhost", timeout=20):
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"] + [f"{k}: {v}" for k, v in dict(headers).items()]
        if body is not None and not any(k.lower() in ("content-length", "transfer-encoding") for k in dict(headers)):
            lines.append(f"Content-Length: {len(body)}")
        return self.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""), timeout)

    def get(self, target, headers=()):
        return self.request("GET", target, headers=headers)

    def post(self, target, body, content_type="application/json", headers=()):
        every = dict(headers)
        if content_type:
            every["Content-Type"] = content_type
        return self.request("POST", target, body, every)

    def predict(self, **fields):
        return self.post("/predict", json.dumps(fields).encode())

    def metric(self, name):
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith("superpoint_" + name + " "):
                return float(line.split()[1])
        return 0.0

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def thread(self, name):
        """Id of the thread of that name."""
        folder = f"/proc/{self.process.pid}/task"
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/comm") as f:
                if f.read().strip() == name:
                    return int(task)
        raise AssertionError(f"no thread {name}")

    @contextlib.contextmanager
    def frozen(self, thread="engine"):
        """One thread of the server stands still, as if what it waits for did not come back."""
        task = self.thread(thread)
        ptrace(PTRACE_SEIZE, task)
        try:
            ptrace(PTRACE_INTERRUPT, task)
            os.waitpid(task, WALL)
            yield
        finally:
            ptrace(PTRACE_DETACH, task)

    @contextlib.contextmanager
    def stuck(self, sock, request):
        """The engine stands still in the middle of the frame that `request`, sent on `sock`, asks for."""
        for _ in range(50):
            sock.sendall(request)
            wait_until(lambda: self.metric("engine_running_seconds") > 0, 5, 0)
            with self.frozen():
                if self.metric("engine_running_seconds") > 0:
                    yield
                    return
            read_answer(sock)  # it was faster
        raise AssertionError("the engine was never met at work")

    def stop(self, sig=signal.SIGTERM, timeout=40):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        rest = self.process.communicate(timeout=timeout)[1].decode()
        self.lines += rest.splitlines(keepends=True)
        if self.process.returncode not in (0, -signal.SIGKILL):
            print(f"the server ended with {self.process.returncode}:\n" + "".join(self.lines)[-6000:])
        return self.process.returncode


# Of <sys/ptrace.h> and <sys/wait.h>.
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


def ptrace(what, task):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(ctypes.c_long(what), ctypes.c_long(task), None, None) != 0:
        raise unittest.SkipTest(f"may not hold up a thread of the server: {os.strerror(ctypes.get_errno())}")


class ServerTest(unittest.TestCase):
    """Tests that share one server."""

    options = ()
    small = True

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options, small=cls.small)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        if code != 0:
            raise AssertionError(f"the server ended with {code}: " + "".join(cls.server.lines))

    def assertError(self, answer, status, *words):
        self.assertIsNotNone(answer, "closed without an answer")
        self.assertEqual(answer.status, status, answer.body[:300])
        detail = answer.json()["detail"]
        self.assertIsInstance(detail, str)
        for word in words:
            self.assertIn(word, detail)

    def assertAlive(self):
        self.assertEqual(self.server.get("/health").status, 200)


def npz(data):
    """Arrays of an NPZ as {name: (dtype, shape, bytes)}; checks the archive's checksums on the way."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if archive.testzip() is not None:
            raise AssertionError("bad checksum")
        for name in archive.namelist():
            raw = archive.read(name)
            if raw[:8] != b"\x93NUMPY\x01\0":
                raise AssertionError("not NPY 1.0")
            length = struct.unpack("<H", raw[8:10])[0]
            header = ast.literal_eval(raw[10:10 + length].decode())
            arrays[name[:-4]] = (header["descr"], header["shape"], raw[10 + length:])
    return arrays


def wait_until(condition, timeout=10.0, every=0.02):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(every)
    return False

"""Load on the service: `make load-test`, or load.py [--seconds 120] [--connections 200] [--resize WxH] [--sanitized].

Connections that post the sample picture again and again, wait as Retry-After says when they are refused, and never stop; a
process beside them that asks for /health; memory at every quarter; then 500 connections that never finish their headers, and 10,000
malformed requests. Prints one JSON document, and fails where a promise is not kept. --sanitized is for a server that is built
with a sanitizer (`make load-test-sanitized`): what it reports is a failure, its memory is its own business.
"""
import argparse
import asyncio
import collections
import json
import multiprocessing
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SUPERPOINT", str(ROOT / "build/bin/superpoint"))


def start(options):
    server = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--access-log", "/dev/null", *options], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if found := re.search(r"Listening on http://.*:(\d+)", line):
            return server, int(found.group(1))
    raise SystemExit("the server did not start")


def resident(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def answer(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(head.split()[1])
    length = int(re.search(r"(?i)content-length: *(\d+)", head).group(1))
    body = await reader.readexactly(length)
    again = re.search(r"(?i)retry-after: *(\d+)", head)
    return status, body, int(again.group(1)) if again else 0


async def client(port, request, until, seen, times):
    reader = writer = None
    while time.monotonic() < until:
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            begin = time.monotonic()
            writer.write(request)
            status, body, again = await answer(reader)
            seen[status] += 1
            if status == 200:
                times.append(time.monotonic() - begin)
                json.loads(body)
            else:
                if b"HTTP/1.1 408" in body:
                    seen["408 inside"] += 1
                # refused bodies end the connection
                writer.close()
                writer = None
                await asyncio.sleep(again)
        except (OSError, asyncio.IncompleteReadError) as error:
            seen[type(error).__name__] += 1
            writer = None
    if writer:
        writer.close()


def ask_health(port, stop, out):
    times, statuses = [], collections.Counter()
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while not stop.is_set():
        begin = time.monotonic()
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        data = b""
        while b'"ok"}\n' not in data and b"unavailable" not in data:
            data += sock.recv(4096)
        times.append(time.monotonic() - begin)
        statuses[int(data.split()[1])] += 1
        time.sleep(0.02)
    out.put((sorted(times), dict(statuses)))


def share(times, part):
    return round(1000 * times[min(len(times) - 1, int(part * len(times)))], 2) if times else None


async def press(port, pid, seconds, connections):
    picture = (ROOT / "sample_data/bridge.jpg").read_bytes()
    request = (b"POST /predict?return_descriptors=false HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" %
               len(picture)) + picture
    seen, times, memory = collections.Counter(), [], []
    until = time.monotonic() + seconds
    tasks = [asyncio.create_task(client(port, request, until, seen, times)) for _ in range(connections)]
    for _ in range(4):
        await asyncio.sleep(seconds / 4)
        memory.append(resident(pid) >> 20)
    await asyncio.gather(*tasks)
    return seen, sorted(times), memory


def loris(port):
    socks = []
    for _ in range(500):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nX-")
        socks.append(sock)
    begin = time.monotonic()
    sock = socket.create_connection(("127.0.0.1", port), 30)
    picture = (ROOT / "sample_data/bridge.jpg").read_bytes()
    sock.sendall(b"POST /predict?return_descriptors=0 HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(picture) + picture)
    status = int(sock.recv(65536).split()[1])
    took = time.monotonic() - begin
    for s in socks:
        s.close()
    return {"status": status, "ms": round(took * 1000, 1)}


def malformed(port, count=10000):
    state = 1
    base = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"image\": 5}"
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        data = bytearray(base)
        for k in range(1 + state % 6):
            data[(state >> (8 + 5 * k)) % len(data)] = (state >> (7 * k)) & 0xFF
        try:
            with socket.create_connection(("127.0.0.1", port), 10) as sock:
                sock.sendall(data[:len(data) - state % 9])
        except OSError:
            pass
    return count


def health_after(port, patience=30):
    """The last answer, and after how long: connections that are over are still being cleared away, which may mean 503 at first."""
    begin = time.monotonic()
    while True:
        with socket.create_connection(("127.0.0.1", port), 10) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            status = int(sock.recv(4096).split()[1])
        if status == 200 or time.monotonic() - begin > patience:
            return status, round(time.monotonic() - begin, 2)
        time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--resize", default="640x480")
    parser.add_argument("--malformed", type=int, default=10000)
    parser.add_argument("--sanitized", action="store_true")
    options = parser.parse_args()
    server, port = start(["--resize", options.resize])
    stop, out = multiprocessing.Event(), multiprocessing.Queue()
    asker = multiprocessing.Process(target=ask_health, args=(port, stop, out))
    asker.start()
    seen, times, memory = asyncio.run(press(port, server.pid, options.seconds, options.connections))
    stop.set()
    health, statuses = out.get()
    asker.join()
    report = {"connections": options.connections, "seconds": options.seconds, "frame": options.resize,
              "answers": {str(k): v for k, v in seen.items()}, "per_second": round(seen[200] / options.seconds, 1),
              "p50_ms": share(times, 0.5), "p99_ms": share(times, 0.99),
              "health": {"asked": len(health), "statuses": statuses, "p50_ms": share(health, 0.5), "p99_ms": share(health, 0.99), "max_ms": share(health, 1)},
              "resident_mib": memory, "load_average": os.getloadavg()[0],
              "slow_loris": loris(port), "malformed": malformed(port, options.malformed)}
    report["health_after"], report["health_after_s"] = health_after(port)
    server.send_signal(signal.SIGTERM)
    said = server.communicate(timeout=120)[1]
    report["exit"] = server.returncode
    print(json.dumps(report, indent=1))
    bad = [k for k in seen if k not in (200, 429, 503)]
    grown = 0 if options.sanitized else memory[-1] - memory[0]
    if server.returncode != 0:
        sys.exit(f"the server ended with {server.returncode}:\n{said[-20000:]}")
    if bad or set(statuses) != {200} or grown > 0.1 * memory[0] + 8 or report["health_after"] != 200 or report["slow_loris"]["status"] != 200:
        sys.exit(f"a promise was not kept: {bad}, health {statuses}, memory grown by {grown} MiB")


if __name__ == "__main__":
    main()

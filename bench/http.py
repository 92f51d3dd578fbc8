#!/usr/bin/env python3
"""A picture in, keypoints and descriptors out, over HTTP: `superpoint serve` beside bench/peers/server.py.

usage: http.py [--seconds S] [--clients N] [--program build/bin/superpoint] [--output FILE]

Both servers run at once and are asked in turn over one connection each, as JSON with the picture in base64 and as a raw
JPEG body, with the same defaults; that they answer with the same points is checked first. Then N clients that never
pause ask each server for a while: pictures a second, and the longest wait beside a fair share, N times the mean time
a picture. What the forward pass alone allows is measured between, in this process, by the same library: in many short
rounds, since a shared machine's matrix unit changes its rate from one second to the next. That load is sent as the
picture itself and as a JPEG of the frame's own size, as a camera's.
"""
import argparse
import base64
import io
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import threading
import time

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TREE, "tests", "parity"))

# What others report for this picture, from JPEG to answer, milliseconds.
REPORTED = {"published package on a p150a": 24.7, "the same on an RTX 5090": 21.5}


class Server:
    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if "http://127.0.0.1:" in line:
                self.port = int(line.split("http://127.0.0.1:")[1].split()[0].rstrip("/"))
                break
        else:
            raise SystemExit(f"{name} did not start")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Client:
    """One connection. Answers are read into one buffer, so that the client costs little beside the servers."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.room = memoryview(bytearray(8 << 20))

    def exchange(self, request):
        """Milliseconds from the first byte sent to the last received, and the body."""
        start = time.perf_counter()
        self.socket.sendall(request)
        have = want = body = 0
        while not want or have < want:
            n = self.socket.recv_into(self.room[have:])
            if n == 0:
                raise SystemExit("a server broke the connection off")
            have += n
            if not want:
                head, end, _ = bytes(self.room[:min(have, 16384)]).partition(b"\r\n\r\n")
                if end:
                    fields = head.decode("latin-1").lower().split("\r\n")
                    if " 200 " not in fields[0]:
                        raise SystemExit("a server answered " + fields[0])
                    length = next(f for f in fields if f.startswith("content-length:"))
                    body = len(head) + 4
                    want = body + int(length.split(":")[1])
        return (time.perf_counter() - start) * 1e3, self.room[body:want]


def request(kind, body):
    return b"POST /predict HTTP/1.1\r\nHost: bench\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind.encode(), len(body)) + body


def requests(jpeg):
    text = json.dumps({"image": base64.b64encode(jpeg).decode()}).encode()
    return {kind: request(kind, body) for kind, body in (("application/json", text), ("image/jpeg", jpeg))}


def check_same(servers, request):
    points = []
    for server in servers:
        answer = json.loads(bytes(Client(server).exchange(request)[1]))
        points.append({tuple(p) for p in answer["keypoints"]})
    common = len(points[0] & points[1]) / max(len(p) for p in points)
    if common < 0.9:
        raise SystemExit(f"the servers do not compute the same: only {common:.0%} of the points are in both answers")
    return common


def one_client(servers, packed, seconds):
    clients = [Client(s) for s in servers]
    times = {(s.name, kind): [] for s in servers for kind in packed}
    for c in clients:
        for request in packed.values():
            for _ in range(3):
                c.exchange(request)
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(next(iter(times.values()))) < 5:
        for server, c in zip(servers, clients):
            for kind, request in packed.items():
                time.sleep(0.05)  # threads spin for a while after their work
                times[server.name, kind].append(c.exchange(request)[0])
    return [{"server": name, "request": kind, "clients": 1, "min_ms": min(t), "median_ms": statistics.median(t),
             "rounds": len(t)} for (name, kind), t in times.items()]


def many_clients(server, request, count, seconds):
    waits, start = [], time.monotonic()

    def ask():
        c = Client(server)
        while time.monotonic() < start + seconds:
            waits.append(c.exchange(request)[0])

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    took = time.monotonic() - start
    rate = len(waits) / took
    return {"server": server.name, "request": "image/jpeg", "clients": count, "per_second": rate,
            "median_ms": statistics.median(waits), "max_ms": max(waits),
            "longest_to_fair_share": max(waits) / (count / rate * 1e3)}


class Forward:
    """The forward pass by itself, in this process, with all threads."""

    def __init__(self, jpeg):
        import ctypes
        from libsuperpoint import Error, Frame, Library, frame_of
        library, error = Library(), Error()
        self.plane = library.frame(jpeg)
        self.engine = library.engine(os.path.join(TREE, "weights/superpoint.safetensors"), engine="cpu", precision="auto")
        frame = frame_of(self.plane)
        frames = (ctypes.POINTER(Frame) * 1)(ctypes.pointer(frame))
        self.run = lambda: library.check(library.lib.sp_engine_run(
            self.engine.handle, frames, ctypes.c_size_t(1), ctypes.byref(self.engine.maps), ctypes.byref(error)), error)

    def rate(self, seconds):
        """Pictures a second that it allows, one frame after another."""
        self.run()
        count, start = 0, time.monotonic()
        while time.monotonic() < start + seconds:
            self.run()
            count += 1
        return count / (time.monotonic() - start)

    def close(self):
        self.engine.close()


def load(servers, forward, jpeg, args):
    """Rounds of: the forward pass alone, then each server under load; the mean rates over the rounds."""
    alone, rows = [], {s.name: [] for s in servers}
    packed = request("image/jpeg", jpeg)
    for _ in range(args.rounds):
        alone.append(forward.rate(args.seconds / args.rounds))
        for s in servers:
            rows[s.name].append(many_clients(s, packed, args.clients, args.seconds / args.rounds))
    results = []
    for runs in rows.values():
        rate = statistics.mean(r["per_second"] for r in runs)
        results.append({**runs[0], "per_second": rate, "median_ms": statistics.median(r["median_ms"] for r in runs),
                        "max_ms": max(r["max_ms"] for r in runs),
                        "longest_to_fair_share": max(r["longest_to_fair_share"] for r in runs)})
        if runs[0]["server"] == "superpoint":
            results[-1]["forward_alone_per_second"] = statistics.mean(alone)
            results[-1]["share_of_forward_alone"] = rate / statistics.mean(alone)
            results[-1]["share_in_each_round"] = [r["per_second"] / a for r, a in zip(runs, alone)]
    return results


def camera_frame(jpeg):
    """The picture as a JPEG of 640x480, quality 90."""
    with Image.open(io.BytesIO(jpeg)) as picture, io.BytesIO() as out:
        picture.resize((640, 480)).save(out, "JPEG", quality=90)
        return out.getvalue()


def report(doc):
    one = {(r["server"], r["request"]): r for r in doc["results"] if r["clients"] == 1}
    for (name, kind), r in one.items():
        print(f"{name:40} {kind:17} least {r['min_ms']:7.1f} ms, median {r['median_ms']:7.1f}")
    for what in {kind for _, kind in one}:
        ours, peer = [next(r for (n, k), r in one.items() if k == what and (n == "superpoint") == mine)
                      for mine in (True, False)]
        print(f"superpoint, {what}: {peer['min_ms'] / ours['min_ms']:.2f} times as fast by least times, "
              f"{peer['median_ms'] / ours['median_ms']:.2f} by medians")
    for r in doc["results"]:
        if r["clients"] > 1:
            share = (f", {r['share_of_forward_alone']:.0%} of the {r['forward_alone_per_second']:.1f} that the forward "
                     f"pass alone allows (median of the rounds {statistics.median(r['share_in_each_round']):.0%})"
                     if "share_of_forward_alone" in r else "")
            print(f"{r['server']}, {r['clients']} clients, {r['picture']}: {r['per_second']:.1f} a second{share}; longest "
                  f"wait {r['longest_to_fair_share']:.2f} fair shares")
    print("reported elsewhere: " + ", ".join(f"{name} {ms} ms" for name, ms in REPORTED.items()))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seconds", type=float, default=30, help="for each part")
    p.add_argument("--rounds", type=int, default=15, help="of each load")
    p.add_argument("--clients", type=int, default=16)
    p.add_argument("--program", default=os.path.join(TREE, "build/bin/superpoint"))
    p.add_argument("--output")
    args = p.parse_args()
    with open(os.path.join(TREE, "sample_data/bridge.jpg"), "rb") as f:
        jpeg = f.read()
    packed, servers = requests(jpeg), []
    try:
        servers.append(Server("FastAPI, Pillow, OpenVINO bf16",
                              [sys.executable, "-u", os.path.join(HERE, "peers/server.py")]))
        servers.append(Server("superpoint", [args.program, "serve", "--port", "0", "--access-log", "off"]))
        common = check_same(servers, packed["application/json"])
        results = one_client(servers, packed, args.seconds)
        forward = Forward(jpeg)
        for name, picture in (("1600x900", jpeg), ("640x480", camera_frame(jpeg))):
            results += [{**row, "picture": name} for row in load(servers, forward, picture, args)]
        forward.close()
    finally:
        for s in servers:
            s.stop()
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    doc = {"command": "bench/http.py " + " ".join(sys.argv[1:]), "picture": "sample_data/bridge.jpg",
           "machine": {"cpu": cpu, "threads": len(os.sched_getaffinity(0)), "load_after": os.getloadavg()[0]},
           "points_in_both": common, "results": results, "reported_ms": REPORTED}
    report(doc)
    if args.output:
        with open(args.output, "w") as f:
            json.dump(doc, f, indent=1)


if __name__ == "__main__":
    main()

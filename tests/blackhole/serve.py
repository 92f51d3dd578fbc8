#!/usr/bin/env python3
"""`superpoint serve` with the simulated chip behind it: /predict through the same queue as any engine, what it says of its path,
a radius that the chip was not prepared for, SIGTERM in the middle of a frame, the legacy path.

    serve.py SUPERPOINT PICTURE
"""
import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

SKIPPED = 77
SIZE = "16x16"  # the simulator needs seconds even for this
PATIENCE = 600  # seconds, on a busy machine
FRAMES_LEFT = 2  # what the server may still take after SIGTERM: the frame that it finishes and as much again, whatever the machine
FRAME_BEGUN = 0.3  # seconds of processor time into a frame, which takes more than a second


def start(program, environment):
    server = subprocess.Popen(
        [program, "serve", "--engine", "blackhole", "--resize", SIZE, "--port", "0", "--engine-timeout", str(PATIENCE),
         "--request-timeout", str(PATIENCE), "--access-log", "off"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    for line in server.stdout:
        said += line
        port = re.search(r"https?://[^\s:]+:(\d+)", said)
        if "Application startup complete" in said and port:
            return server, f"http://127.0.0.1:{port.group(1)}"
    raise SystemExit(f"the server did not start:\n{said}")


def ask(url, body=None):
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def processor_seconds(server):
    """User and system time of the server so far: what it takes, however busy the machine is."""
    fields = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop(server):
    """SIGTERM; the processor time that the server still takes."""
    before, others = processor_seconds(server), sum(os.times()[2:4])
    server.send_signal(signal.SIGTERM)
    rest = server.communicate(timeout=PATIENCE)[0]
    assert server.returncode == 0, (server.returncode, rest)
    assert "Application shutdown complete" in rest, rest
    return sum(os.times()[2:4]) - others - before


def stop_in_a_frame(server, url, wish):
    """SIGTERM while the chip works: the frame is finished and answered, and the server ends."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(url + "/predict", wish)))
    idle = processor_seconds(server)
    asking.start()
    while processor_seconds(server) < idle + FRAME_BEGUN:
        assert not answers, "the frame was over too soon"
        time.sleep(0.02)
    took = stop(server)
    asking.join()
    return answers[0], took


def main():
    if not os.environ.get("TTSIM"):
        print("SKIPPED blackhole.serve: TTSIM is not set; it names the library of the Blackhole simulator")
        return SKIPPED
    program, picture = sys.argv[1:3]
    environment = dict(os.environ, SUPERPOINT_BLACKHOLE_GRID="1x1")
    image = base64.b64encode(open(picture, "rb").read()).decode()
    wish = {"image": image, "keypoint_threshold": 0.0, "border": 0}

    server, url = start(program, environment)
    try:
        info = ask(url + "/info")
        path = info["serving_path"]
        assert path["traced"] is True and path["device_nms"] is True and path["nms_radius_traced"] == 4, path
        assert ask(url + "/health")["status"] == "ok"
        fused = ask(url + "/predict", wish)
        assert fused["num_keypoints"] > 0
        assert fused["serving_path"]["engine"] == "blackhole", fused["serving_path"]
        assert fused["serving_path"]["device_nms"] is True
        before = processor_seconds(server)
        again = ask(url + "/predict", wish)
        frame = processor_seconds(server) - before
        assert (again["keypoints"], again["scores"], again["descriptors"]) == (fused["keypoints"], fused["scores"],
                                                                              fused["descriptors"])
        other = ask(url + "/predict", dict(wish, nms_radius=2))
        assert other["serving_path"]["device_nms"] is False
        assert other["num_keypoints"] > fused["num_keypoints"]
        last, took = stop_in_a_frame(server, url, wish)
    finally:
        server.kill()
    assert (last["keypoints"], last["scores"]) == (fused["keypoints"], fused["scores"])
    print(f"/predict: {fused['num_keypoints']} points; {info['serving_path']}")
    print(f"SIGTERM in a frame: answered, and down after {took:.2f} s of processor time; a frame takes {frame:.2f}")
    assert took < FRAMES_LEFT * frame, (took, frame)

    server, url = start(program, dict(environment, TT_FUSED="0"))
    try:
        legacy = ask(url + "/predict", wish)
        stop(server)
    finally:
        server.kill()
    assert legacy["serving_path"]["traced"] is False and legacy["serving_path"]["device_nms"] is False
    assert legacy["keypoints"] == fused["keypoints"] and legacy["scores"] == fused["scores"]
    print("TT_FUSED=0: the same keypoints and scores, layer by layer")
    return 0


if __name__ == "__main__":
    sys.exit(main())

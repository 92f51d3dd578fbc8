"""The service against the clients and parsers of others: `make http-parity`.

numpy reads the NPZ answers, Pillow's pixels are found again, prometheus_client parses /metrics, tritonclient speaks KServe v2,
and schemathesis holds the service against its own OpenAPI description.
"""
import base64
import io
import os
import pathlib
import re
import subprocess
import sys

import numpy
import requests
import tritonclient.http
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_data/bridge.jpg"
PROGRAM = os.environ.get("SUPERPOINT", str(ROOT / "build/bin/superpoint"))


def start():
    server = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--access-log", "off", "--resize", "160x120"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if found := re.search(r"Listening on (http://(\S+))", line):
            return server, found.group(1), found.group(2)
    raise SystemExit("the server did not start")


def check_numpy(url):
    data = SAMPLE.read_bytes()
    for n in (0, 1, 1024):
        query = {"max_keypoints": n, "keypoint_threshold": 0, "nms_radius": 0}
        answer = requests.post(url + "/predict", params=query, data=data, headers={"Accept": "application/x-npz", "Content-Type": "image/jpeg"})
        arrays = numpy.load(io.BytesIO(answer.content))
        assert set(arrays) == {"keypoints", "scores", "descriptors"}
        assert arrays["keypoints"].shape == (n, 2) and arrays["keypoints"].dtype == numpy.float32
        assert arrays["scores"].shape == (n,) and arrays["descriptors"].shape == (n, 256)
        assert arrays["descriptors"].dtype == numpy.float16
        found = requests.post(url + "/predict", json={"image": base64.b64encode(data).decode(), **query}).json()
        assert numpy.array_equal(numpy.array(found["keypoints"], numpy.float32).reshape(n, 2), arrays["keypoints"])
        assert numpy.array_equal(numpy.array(found["scores"], numpy.float32), arrays["scores"])
        inner = numpy.load(io.BytesIO(base64.b64decode(found["descriptors"]["data"])))["descriptors"]
        assert numpy.array_equal(inner.view(numpy.uint16), arrays["descriptors"].view(numpy.uint16))
    print("numpy: NPZ answers of 0, 1 and 1024 points load and equal the JSON")


def check_prometheus(url):
    families = {f.name: f for f in text_string_to_metric_families(requests.get(url + "/metrics").text)}
    for name in ("superpoint_requests", "superpoint_stage_seconds", "superpoint_queue_depth", "superpoint_keypoints",
                 "superpoint_received_bytes", "superpoint_build_info"):
        assert name in families, (name, list(families))
    stages = {s.labels["stage"] for s in families["superpoint_stage_seconds"].samples}
    assert stages == {"queue", "preprocess", "forward", "postprocess", "encode", "total"}
    print(f"prometheus_client: {len(families)} families parsed")


def check_triton(url, address):
    client = tritonclient.http.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("superpoint")
    assert client.get_server_metadata()["name"] == "superpoint"
    assert client.get_model_metadata("superpoint")["inputs"][0]["name"] == "image"
    data = SAMPLE.read_bytes()
    expected = requests.post(url + "/predict", data=data, headers={"Content-Type": "image/jpeg"}).json()
    points = numpy.array(expected["keypoints"], numpy.float32)
    names = ("num_keypoints", "keypoints", "scores", "descriptors")
    pixels = numpy.asarray(Image.open(SAMPLE).convert("RGB"))
    for binary_out in (True, False):
        outputs = [tritonclient.http.InferRequestedOutput(n, binary_data=binary_out) for n in names]
        file_input = tritonclient.http.InferInput("image", [1], "BYTES")
        file_input.set_data_from_numpy(numpy.array([data], dtype=object), binary_data=True)
        text_input = tritonclient.http.InferInput("image", [1], "BYTES")
        text_input.set_data_from_numpy(numpy.array([base64.b64encode(data)], dtype=object), binary_data=False)
        pixel_input = tritonclient.http.InferInput("image", list(pixels.shape), "UINT8")
        pixel_input.set_data_from_numpy(pixels, binary_data=True)
        for one in (file_input, text_input, pixel_input):
            result = client.infer("superpoint", [one], outputs=outputs, request_id="7")
            assert result.as_numpy("num_keypoints").tolist() == [len(points)]
            assert numpy.array_equal(result.as_numpy("keypoints"), points)
            assert result.as_numpy("descriptors").shape == (len(points), 256)
            lengths = numpy.linalg.norm(result.as_numpy("descriptors").astype(numpy.float32), axis=1)
            assert abs(lengths - 1).max() < 5e-3
    try:
        client.infer("superpoint", [file_input], outputs=[tritonclient.http.InferRequestedOutput("nothing")])
        raise AssertionError("an unknown output was taken")
    except tritonclient.utils.InferenceServerException as error:
        assert "outputs" in str(error)
    print("tritonclient: metadata, health, and inference from files, text and pixels, in binary and in JSON")


def check_schema(url):
    folder = pathlib.Path(sys.executable).parent
    command = [str(folder / "schemathesis"), "run", url + "/openapi.json", "--checks", "all", "--max-examples", os.environ.get("EXAMPLES", "40"),
               "--request-timeout", "30", "--seed", os.environ.get("SEED", "1"), "--output-sanitize", "false"]
    subprocess.run(command, check=True, env={**os.environ, "SCHEMATHESIS_HOOKS": "http_hooks", "PYTHONPATH": str(ROOT / "tests/parity"), "PYTHONDONTWRITEBYTECODE": "1"},
                   cwd="/tmp")
    print("schemathesis: nothing found")


def main():
    server, url, address = start()
    try:
        check_numpy(url)
        check_triton(url, address)
        check_prometheus(url)
        check_schema(url)
        assert requests.get(url + "/health").status_code == 200
    finally:
        server.terminate()
        assert server.wait(30) == 0


if __name__ == "__main__":
    main()

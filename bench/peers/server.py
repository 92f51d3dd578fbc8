"""The service as one would write it in Python: FastAPI and uvicorn, Pillow, OpenVINO in bf16, numpy and OpenCV.

usage: server.py [--port N] [--threads N] [--precision bf16|f32]

POST /predict takes what `superpoint serve` takes in its plainest form, the JSON body {"image": base64, "max_keypoints",
"keypoint_threshold", "nms_radius"} or a raw image/jpeg body, and answers with the same members: keypoints and scores as
numbers, descriptors as an NPZ of float16 in base64. It prints where it listens when it answers.

Nothing is slow on purpose: the network and its softmax are one OpenVINO graph that reads the 8-bit plane,
suppression is OpenCV's dilation, selection and sampling are vectorised, uvicorn runs on uvloop and httptools.
"""
import argparse
import base64
import io
import os
import socket
import threading
import time

import cv2
import numpy as np
import openvino
import openvino.opset13 as op
import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from fastapi.concurrency import run_in_threadpool
from PIL import Image
from safetensors.numpy import load_file

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WIDTH, HEIGHT, CELL, BORDER = 640, 480, 8, 4
ENCODER = [f"encoder.conv_blocks.{block}.conv_{letter}" for block in range(4) for letter in "ab"]
POOLED = {ENCODER[1], ENCODER[3], ENCODER[5]}


def network(weights):
    """8-bit plane [1,1,480,640] to scores [1,1,480,640] and descriptors [1,256,60,80]."""
    tensors = load_file(weights)

    def convolution(x, name):
        w = tensors[name + ".weight"].astype(np.float32)
        b = tensors[name + ".bias"].astype(np.float32).reshape(1, -1, 1, 1)
        pad = [w.shape[2] // 2] * 2
        return op.add(op.convolution(x, op.constant(w), [1, 1], pad, pad, [1, 1]), op.constant(b))

    plane = op.parameter([1, 1, HEIGHT, WIDTH], np.uint8, name="plane")
    x = op.multiply(op.convert(plane, "f32"), op.constant(np.float32(1 / 255)))
    for name in ENCODER:
        x = op.relu(convolution(x, name))
        if name in POOLED:
            x = op.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    logits = convolution(op.relu(convolution(x, "keypoint_decoder.conv_score_a")), "keypoint_decoder.conv_score_b")
    cells = op.slice(op.softmax(logits, 1), np.array([0]), np.array([64]), np.array([1]), np.array([1]))
    scores = op.depth_to_space(cells, "depth_first", CELL)
    raw = convolution(op.relu(convolution(x, "descriptor_decoder.conv_descriptor_a")),
                      "descriptor_decoder.conv_descriptor_b")
    return openvino.Model([scores, op.normalize_l2(raw, np.array([1]), 1e-12, "max")], [plane])


class Engine:
    def __init__(self, weights, precision, threads):
        compiled = openvino.Core().compile_model(network(weights), "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": precision})
        self.request, self.lock = compiled.create_infer_request(), threading.Lock()

    def __call__(self, plane):
        with self.lock:
            self.request.infer({0: plane[None, None]}, share_inputs=True)
            scores, descriptors = (self.request.get_output_tensor(i).data for i in (0, 1))
            return scores[0, 0].copy(), descriptors[0].copy()


def preprocess(data):
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    plane = picture.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR).getchannel(0)
    return np.asarray(plane), picture.width, picture.height


def select(scores, radius, threshold, limit):
    """Pixels (x, y) and scores: one pass of suppression, threshold, border; best first, ties by y, then x."""
    if radius:
        side = 2 * radius + 1
        peaks = scores == cv2.dilate(scores, np.ones((side, side), np.uint8))
    else:
        peaks = np.ones(scores.shape, bool)
    peaks &= scores > threshold
    inner = np.zeros_like(peaks)
    inner[BORDER:-BORDER, BORDER:-BORDER] = peaks[BORDER:-BORDER, BORDER:-BORDER]
    at = np.flatnonzero(inner)
    values = scores.ravel()[at]
    order = np.argsort(-values, kind="stable")[:None if limit < 0 else limit]
    return np.stack([at[order] % WIDTH, at[order] // WIDTH], 1), values[order]


def sample(descriptors, pixels):
    """Bilinear, zero outside, at (p - 3.5) / (8 n - 4.5) (n - 1); unit length; [n,256] float16."""
    channels, rows, columns = descriptors.shape
    flat = np.ascontiguousarray(descriptors.reshape(channels, -1).T)
    x = (pixels[:, 0] - 3.5) / (CELL * columns - 4.5) * (columns - 1)
    y = (pixels[:, 1] - 3.5) / (CELL * rows - 4.5) * (rows - 1)
    x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
    out = np.zeros((len(pixels), channels), np.float32)
    for dy in (0, 1):
        for dx in (0, 1):
            cx, cy = x0 + dx, y0 + dy
            weight = (1 - np.abs(x - cx)) * (1 - np.abs(y - cy))
            weight[(cx < 0) | (cx >= columns) | (cy < 0) | (cy >= rows)] = 0
            at = np.clip(cy, 0, rows - 1) * columns + np.clip(cx, 0, columns - 1)
            out += flat[at] * weight[:, None].astype(np.float32)
    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)
    return out.astype(np.float16)


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return base64.b64encode(file.getvalue()).decode()


def predict(engine, data, options):
    start = time.perf_counter()
    try:
        plane, width, height = preprocess(data)
    except OSError as reason:
        raise HTTPException(400, f"image: {reason}")
    decoded = time.perf_counter()
    scores, descriptors = engine(plane)
    forward = time.perf_counter()
    pixels, values = select(scores, int(options.get("nms_radius", 4)), float(options.get("keypoint_threshold", 0.005)),
                            int(options.get("max_keypoints", 1024)))
    sampled = sample(descriptors, pixels)
    scale = width / WIDTH, height / HEIGHT
    answer = {
        "num_keypoints": len(pixels), "keypoints": (pixels * np.array(scale)).tolist(), "scores": values.tolist(),
        "original_size": {"height": height, "width": width}, "image_size": {"height": HEIGHT, "width": WIDTH},
        "scale": {"x": scale[0], "y": scale[1]},
        "descriptors": {"format": "npz", "key": "descriptors", "dtype": "float16", "shape": list(sampled.shape),
                        "data": npz(descriptors=sampled)}}
    end = time.perf_counter()
    answer["timing_ms"] = {"preprocess": (decoded - start) * 1e3, "device_forward": (forward - decoded) * 1e3,
                           "postprocess": (end - forward) * 1e3, "total": (end - start) * 1e3}
    return JSONResponse(answer)


def application(engine):
    app = FastAPI()

    @app.get("/health")
    async def health():
        return {"status": "ok"}

    @app.post("/predict")
    async def handle(request: Request):
        if request.headers.get("content-type", "").startswith("image/"):
            return await run_in_threadpool(predict, engine, await request.body(), dict(request.query_params))
        body = await request.json()
        return await run_in_threadpool(predict, engine, base64.b64decode(body["image"]), body)

    return app


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--precision", default="bf16")
    p.add_argument("--weights", default=os.path.join(TREE, "weights/superpoint.safetensors"))
    args = p.parse_args()
    cv2.setNumThreads(1)  # its pool would contend with OpenVINO's for the same cores
    engine = Engine(args.weights, args.precision, args.threads)
    listener = socket.create_server(("127.0.0.1", args.port))
    print(f"Listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(application(engine), log_level="warning", access_log=False)).run([listener])


if __name__ == "__main__":
    main()

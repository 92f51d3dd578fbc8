"""The dense forward pass beside PyTorch, ONNX Runtime and OpenVINO, in one process, in turn.

usage: forward.py [--isa native|avx512|avx2] [--threads N] [--seconds S] [--size 640x480] [--output FILE]

Every variant computes the same thing from the same weights: the score map after softmax, unfolded, and the
descriptor map at unit length, of one frame. Each round runs every variant once, so that what else
the machine does falls on all of them; the figures are the least and the median over the rounds. Accuracy
is against PyTorch in float32. The peers get their input as floats in 0...1, prepared beforehand.
--isa lowers the peers with the variables that they read, and ours with its own option. ONNX Runtime has no such
variable and stays as it is; PyTorch and OpenVINO are lowered.
"""
import argparse
import json
import os
import platform
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
LOWER = {
    "native": {},
    "avx512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "ATEN_CPU_CAPABILITY": "avx512"},
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}
OURS = {  # (precision, level) that each machine would have
    "native": [("fp32", None), ("bf16", None), ("int8", None)],
    "avx512": [("fp32", "avx512"), ("bf16", "avx512vnni"), ("int8", "avx512vnni")],
    "avx2": [("fp32", "avx2"), ("int8", "avx2")],
}


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--isa", choices=LOWER, default="native")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--size", default="640x480")
    p.add_argument("--weights", default=os.path.join(TREE, "weights/superpoint.safetensors"))
    p.add_argument("--output")
    return p.parse_args()


def restart_with(variables):
    """The peers read their variables when they are loaded."""
    if any(os.environ.get(k) != v for k, v in variables.items()):
        os.environ.update(variables)
        os.execv(sys.executable, [sys.executable] + sys.argv)


def build_torch(weights):
    import torch
    from safetensors.torch import load_file

    class Dense(torch.nn.Module):
        """SuperPoint as the paper has it, from the tensors of the checkpoint."""

        def __init__(self):
            super().__init__()
            tensors = load_file(weights)
            names = [f"encoder.conv_blocks.{b}.conv_{c}" for b in range(4) for c in "ab"]
            names += ["keypoint_decoder.conv_score_a", "keypoint_decoder.conv_score_b",
                      "descriptor_decoder.conv_descriptor_a", "descriptor_decoder.conv_descriptor_b"]
            layers = []
            for name in names:
                w = tensors[name + ".weight"].float()
                layer = torch.nn.Conv2d(w.shape[1], w.shape[0], w.shape[2], padding=w.shape[2] // 2)
                layer.weight.data, layer.bias.data = w, tensors[name + ".bias"].float()
                layers.append(layer)
            self.layers = torch.nn.ModuleList(layers)

        def forward(self, x):
            f = torch.nn.functional
            for i in range(8):
                x = torch.relu(self.layers[i](x))
                if i in (1, 3, 5):
                    x = f.max_pool2d(x, 2, 2)
            logits = self.layers[9](torch.relu(self.layers[8](x)))
            scores = f.pixel_shuffle(torch.softmax(logits.float(), 1)[:, :64], 8)[0, 0]
            raw = self.layers[11](torch.relu(self.layers[10](x)))
            return scores, f.normalize(raw.float(), p=2, dim=1)[0].permute(1, 2, 0)

    return Dense().eval()


def peers(args, plane):
    """(name, precision, function that returns scores and descriptors)"""
    import tempfile
    import numpy as np
    import onnxruntime
    import openvino
    import torch
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    model = build_torch(args.weights)
    x = torch.from_numpy(plane).float()[None, None] / 255
    out = [("PyTorch " + torch.__version__.split("+")[0], "fp32", lambda: [t.numpy() for t in model(x)])]
    if args.isa != "avx2":  # there PyTorch emulates bf16, at a minute a frame
        half, xh = build_torch(args.weights).bfloat16(), x.bfloat16()
        out.append((out[0][0], "bf16", lambda: [t.numpy() for t in half(xh)]))

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "superpoint.onnx")
        torch.onnx.export(model, (x,), path, opset_version=17, input_names=["x"], dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        core = openvino.Core()
        network = core.read_model(path)
        network.reshape(x.shape)
    array = x.numpy()
    if args.isa == "native":
        out.append(("ONNX Runtime " + onnxruntime.__version__, "fp32", lambda: session.run(None, {"x": array})))

    def compiled(precision):
        c = core.compile_model(network, "CPU", {"INFERENCE_NUM_THREADS": args.threads, "NUM_STREAMS": 1,
                                                "PERFORMANCE_HINT": "LATENCY",
                                                "INFERENCE_PRECISION_HINT": precision})
        request = c.create_infer_request()

        def run():
            request.infer({0: array}, share_inputs=True)
            return [request.get_output_tensor(i).data for i in (0, 1)]
        return run

    version = "OpenVINO " + ".".join(openvino.__version__.split("-")[0].split(".")[:3])
    out.append((version, "fp32", compiled("f32")))
    if args.isa != "avx2":
        out.append((version, "bf16", compiled("bf16")))
    return out


def ours(args, plane):
    sys.path.insert(0, os.path.join(TREE, "tests/parity"))
    from libsuperpoint import Library
    library, out = Library(), []
    for precision, level in OURS[args.isa]:
        try:
            engine = library.engine(args.weights, engine="cpu", precision=precision, level=level, threads=args.threads)
        except RuntimeError as reason:
            print(f"superpoint {precision}: {reason}", file=sys.stderr)
            continue
        out.append(("superpoint", precision, engine))
    return out


def pcc(a, b):
    import numpy as np
    return float(np.corrcoef(a.astype(np.float64).ravel(), b.astype(np.float64).ravel())[0, 1])


def main():
    args = arguments()
    restart_with(LOWER[args.isa])
    import numpy as np
    from PIL import Image
    width, height = map(int, args.size.split("x"))
    picture = Image.open(os.path.join(TREE, "sample_data/bridge.jpg")).convert("RGB")
    plane = np.ascontiguousarray(np.asarray(picture.resize((width, height), Image.BILINEAR))[:, :, 0])

    variants = peers(args, plane) + ours(args, plane)
    times, results, expected = [[] for _ in variants], [], None
    for i, (name, precision, run) in enumerate(variants):  # warm up, and compare
        scores, descriptors = [np.array(a) for a in (run() if callable(run) else run.run(plane))]
        expected = expected or (scores, descriptors)
        results.append({"name": name, "precision": precision, "score_pcc": pcc(scores, expected[0]),
                        "descriptor_pcc": pcc(descriptors, expected[1]),
                        "max_abs": float(max(np.abs(scores - expected[0]).max(),
                                             np.abs(descriptors - expected[1]).max()))})
    print(f"measuring for {args.seconds:g} s", file=sys.stderr, flush=True)
    end = time.monotonic() + args.seconds
    while time.monotonic() < end or len(times[0]) < 5:
        for i, (_, _, run) in enumerate(variants):
            time.sleep(0.1)  # threads spin for a while after their work, and would run into the next one's time
            start = time.perf_counter()
            if callable(run):
                run()
                times[i].append((time.perf_counter() - start) * 1e3)
            else:
                run.run(plane)
                times[i].append(run.maps.forward_ms)  # without ctypes' copy of the results
    for r, t in zip(results, times):
        r.update(min_ms=min(t), median_ms=sorted(t)[len(t) // 2], rounds=len(t), times_ms=[round(x, 3) for x in t])
    report(args, results)


def report(args, results):
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    doc = {"command": "bench/peers/forward.py " + " ".join(sys.argv[1:]), "isa": args.isa, "size": args.size,
           "machine": {"cpu": cpu, "threads": args.threads, "kernel": platform.release(),
                       "load_after": os.getloadavg()[0]},
           "results": results}
    print(f"{'':26} {'type':5} {'min ms':>8} {'median':>8}  score PCC  descr. PCC  max abs   (load {os.getloadavg()[0]:.1f})")
    for r in results:
        print(f"{r['name']:26} {r['precision']:5} {r['min_ms']:8.1f} {r['median_ms']:8.1f}  {r['score_pcc']:.6f}  "
              f"{r['descriptor_pcc']:.6f}  {r['max_abs']:.2e}")
    for r in results:
        if r["name"] != "superpoint":
            continue
        rivals = [p for p in results if p["name"] != "superpoint"
                  and (r["precision"] != "fp32" or p["precision"] == "fp32")]
        best = min(rivals, key=lambda p: p["min_ms"])
        median = min(rivals, key=lambda p: p["median_ms"])
        print(f"superpoint {r['precision']}: {best['min_ms'] / r['min_ms']:.2f} times as fast as {best['name']} "
              f"{best['precision']} by least times, {median['median_ms'] / r['median_ms']:.2f} by medians")
    if args.output:
        with open(args.output, "w") as f:
            json.dump(doc, f, indent=1)


if __name__ == "__main__":
    main()

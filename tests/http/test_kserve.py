"""The Open Inference Protocol (KServe v2): JSON tensors and the binary extension."""
import json
import struct
import unittest

from harness import ServerTest, b64, blank, checkers, noise

INFER = "/v2/models/superpoint/infer"


def files(*pictures):
    return b"".join(struct.pack("<I", len(p)) + p for p in pictures)


class KServe(ServerTest):
    def infer(self, request, binary=b"", status=200, path=INFER):
        head = json.dumps(request).encode()
        headers = {"Inference-Header-Content-Length": str(len(head))} if binary else {}
        answer = self.server.post(path, head + binary, "application/octet-stream" if binary else "application/json", headers)
        self.assertEqual(answer.status, status, answer.body[:300])
        length = answer.header("inference-header-content-length")
        found = json.loads(answer.body[:int(length)] if length else answer.body)
        if status != 200:
            self.assertEqual(found["error"], found["detail"])
            return found["error"]
        tail = answer.body[int(length):] if length else b""
        outputs = {}
        for o in found["outputs"]:
            size = o.get("parameters", {}).get("binary_data_size")
            if size is not None:
                o["bytes"], tail = tail[:size], tail[size:]
            outputs[o["name"]] = o
        self.assertEqual(tail, b"")
        self.assertEqual((found["model_name"], found["model_version"]), ("superpoint", "1"))
        if "id" in request:
            self.assertEqual(found["id"], request["id"])
        return outputs

    def image(self, datatype="BYTES", shape=(1,), **more):
        return {"name": "image", "datatype": datatype, "shape": list(shape), **more}

    def test_metadata(self):
        self.assertEqual(self.server.get("/v2").json()["extensions"], ["binary_tensor_data"])
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/superpoint/ready",
                     "/v2/models/superpoint/versions/1/ready"):
            self.assertEqual(self.server.get(path).status, 200)
        model = self.server.get("/v2/models/superpoint").json()
        self.assertEqual([o["name"] for o in model["outputs"]], ["num_keypoints", "keypoints", "scores", "descriptors"])
        answer = self.server.get("/v2/models/other")
        self.assertEqual(answer.status, 404)

    def test_json_is_what_predict_says(self):
        expected = self.server.predict(image=b64(noise()), max_keypoints=7, keypoint_threshold=0).json()
        out = self.infer({"id": "my-1", "parameters": {"max_keypoints": 7, "keypoint_threshold": 0.0},
                          "inputs": [self.image(data=[b64(noise())])]})
        n = expected["num_keypoints"]
        self.assertEqual(out["num_keypoints"]["data"], [n])
        self.assertEqual(out["keypoints"]["shape"], [n, 2])
        self.assertEqual(out["keypoints"]["data"], [v for p in expected["keypoints"] for v in p])
        self.assertEqual(out["scores"]["data"], expected["scores"])
        self.assertEqual((out["descriptors"]["datatype"], out["descriptors"]["shape"]), ("FP32", [n, 256]))
        self.assertEqual(len(out["descriptors"]["data"]), n * 256)

    def test_binary(self):
        plain = self.infer({"inputs": [self.image(data=[b64(noise())])]})
        binary = files(noise())
        out = self.infer({"parameters": {"binary_data_output": True},
                          "inputs": [self.image(parameters={"binary_data_size": len(binary)})]}, binary)
        n = plain["num_keypoints"]["data"][0]
        self.assertEqual(struct.unpack("<i", out["num_keypoints"]["bytes"]), (n,))
        self.assertEqual(struct.unpack(f"<{2 * n}f", out["keypoints"]["bytes"]),
                         struct.unpack(f"<{2 * n}f", struct.pack(f"<{2 * n}f", *plain["keypoints"]["data"])))
        self.assertEqual((out["descriptors"]["datatype"], len(out["descriptors"]["bytes"])), ("FP16", n * 512))

    def test_chosen_outputs(self):
        out = self.infer({"inputs": [self.image(data=[b64(noise())])],
                          "outputs": [{"name": "scores", "parameters": {"binary_data": True}}, {"name": "num_keypoints"}]})
        self.assertEqual(set(out), {"scores", "num_keypoints"})
        self.assertEqual(len(out["scores"]["bytes"]), 4 * out["num_keypoints"]["data"][0])
        self.assertIn("outputs", self.infer({"inputs": [self.image(data=[b64(blank())])], "outputs": [{"name": "x"}]}, status=400))

    def test_batches(self):
        out = self.infer({"inputs": [self.image(shape=[3], data=[b64(noise()), b64(blank()), b64(checkers())])],
                          "parameters": {"return_descriptors": False}})
        counts = out["num_keypoints"]["data"]
        self.assertEqual((len(counts), out["keypoints"]["shape"]), (3, [sum(counts), 2]))
        self.assertNotIn("descriptors", out)

    def test_pixels(self):
        pixels = [255 * ((x // 8 + y // 8) % 2) for y in range(64) for x in range(64)]
        expected = self.infer({"inputs": [self.image(data=[b64(checkers())])]})["keypoints"]
        for shape, data in (([64, 64], pixels), ([64, 64, 1], pixels), ([1, 64, 64, 1], pixels),
                            ([64, 64, 3], [v for p in pixels for v in (p, 1, 2)]),
                            ([64, 64], [pixels[64 * y:64 * y + 64] for y in range(64)])):
            self.assertEqual(self.infer({"inputs": [self.image("UINT8", shape, data=data)]})["keypoints"], expected, shape)
        raw = bytes(pixels)
        out = self.infer({"inputs": [self.image("UINT8", [2, 64, 64, 1], parameters={"binary_data_size": 2 * len(raw)})]}, raw * 2)
        self.assertEqual(out["num_keypoints"]["data"][0], out["num_keypoints"]["data"][1])
        self.assertEqual(out["keypoints"]["data"], expected["data"] * 2)

    def test_errors(self):
        ok = b64(blank())
        for request, word in (
                ({}, "inputs"), ({"inputs": []}, "inputs"), ({"inputs": [5]}, "inputs"), ({"inputs": {}}, "inputs"),
                ({"inputs": [self.image(data=[ok]), self.image(data=[ok])]}, "one input"),
                ({"inputs": [{**self.image(data=[ok]), "name": "x"}]}, "image"),
                ({"inputs": [self.image("FP32", data=[1.0])]}, "datatype"), ({"inputs": [self.image()]}, "data"),
                ({"inputs": [self.image(shape=[], data=[ok])]}, "shape"), ({"inputs": [self.image(shape=[-1], data=[ok])]}, "shape"),
                ({"inputs": [self.image(shape=[2], data=[ok])]}, "less"), ({"inputs": [self.image(data=[ok, ok])]}, "more"),
                ({"inputs": [self.image(shape=[0], data=[])]}, "no pictures"), ({"inputs": [self.image(data=[5])]}, "base64"),
                ({"inputs": [self.image(data=["!"])]}, "base64"), ({"inputs": [self.image(data=[b64(b"junk")])]}, "image"),
                ({"inputs": [self.image("UINT8", [2, 2], data=[1, 2, 3])]}, "less"),
                ({"inputs": [self.image("UINT8", [2, 2], data=[1, 2, 3, 256])]}, "0...255"),
                ({"inputs": [self.image("UINT8", [2, 2], data=[1, 2, 3, -1])]}, "0...255"),
                ({"inputs": [self.image("UINT8", [2, 2], data=[1, 2, 3, 1.5])]}, "0...255"),
                ({"inputs": [self.image("UINT8", [2, 2], data=[1, 2, 3, "4"])]}, "0...255"),
                ({"inputs": [self.image("UINT8", [2, 2, 2], data=[0] * 8)]}, "C must"),
                ({"inputs": [self.image("UINT8", [0, 2], data=[])]}, "no pixels"),
                ({"inputs": [self.image(data=[ok])], "parameters": {"nms_radius": 99}}, "nms_radius"),
                ({"inputs": [self.image(data=[ok])], "parameters": {"nms_radius": [1]}}, "nms_radius"),
                ({"inputs": [self.image(data=[ok])], "parameters": 5}, "parameters"),
                ({"inputs": [self.image(parameters={"binary_data_size": 7})]}, "binary_data_size")):
            self.assertIn(word, self.infer(request, status=400), request)
        self.assertIn("max_pixels", self.infer({"inputs": [self.image("UINT8", [60000, 60000], data=[])]}, status=413))
        self.assertIn("max_batch", self.infer({"inputs": [self.image(shape=[17], data=[ok] * 17)]}, status=413))
        for binary in (b"\1", struct.pack("<I", 100) + b"x", struct.pack("<I", 0), files(blank()) + b"x",
                       struct.pack("<I", 2**32 - 1)):
            self.infer({"inputs": [self.image(parameters={"binary_data_size": len(binary)})]}, binary, 400)
        self.assertEqual(self.server.post(INFER, b"not json").status, 400)
        self.assertEqual(self.server.post(INFER, b"{}", headers={"Inference-Header-Content-Length": "5"}).status, 400)
        self.assertEqual(self.server.post(INFER, b"{}", headers={"Inference-Header-Content-Length": "x"}).status, 400)
        self.assertIn("error", self.server.post(INFER, b"").json())


if __name__ == "__main__":
    unittest.main()

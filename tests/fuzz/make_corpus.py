#!/usr/bin/env python3
"""Make the start of the corpora that no other test has as files: tests/fuzz/corpus/safetensors and .../manifest.

    python3 tests/fuzz/make_corpus.py

Needs nothing but Python. What fuzzers find is added to these folders by hand, under names of its own.
"""
from __future__ import annotations

import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def safetensors(header: dict | str, data: bytes) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype: str, shape: list[int], start: int, end: int) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def weights():
    first = "encoder.conv_blocks.0.conv_a.weight"
    yield "empty", safetensors({}, b"")
    yield "one", safetensors({"a": tensor("F32", [2, 3], 0, 24)}, bytes(24))
    yield "types", safetensors({"__metadata__": {"format": "pt", "license": "apache-2.0"},
                                "a": tensor("F16", [3], 0, 6), "b": tensor("BF16", [3], 6, 12),
                                "c": tensor("I64", [1], 12, 20), "d": tensor("F32", [], 20, 24)}, bytes(24))
    yield "first-layer", safetensors({first: tensor("F32", [64, 1, 3, 3], 0, 2304)}, bytes(2304))
    yield "overlap", safetensors({"a": tensor("F32", [2], 0, 8), "b": tensor("F32", [1], 4, 8)}, bytes(8))
    yield "gap", safetensors({"a": tensor("F32", [1], 4, 8)}, bytes(8))
    yield "zero-sized", safetensors({"a": tensor("F32", [0, 5], 0, 0), "b": tensor("F32", [1], 0, 4)}, bytes(4))
    yield "escapes", safetensors('{"\\u0061\\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   ', bytes(4))
    yield "cut", safetensors({"a": tensor("F32", [1000], 0, 4000)}, bytes(10))
    yield "huge-header", struct.pack("<Q", 2**63 - 1) + b"{}"


def manifest(**changes) -> dict:
    document = {
        "schema_version": "5.1", "name": "demo", "arch": "blackhole", "device_count": 1,
        "weights": {"repo_id": "owner/name", "revision": None}, "build_key": None, "files": [],
        "container": {
            "image": {"registry": "hf", "repository": "demo", "tag": "tt-model/demo:0123456789ab",
                      "digest": "sha256:" + "0123456789abcdef" * 4},
            "kind": "tt-dit-server", "runtime": {"app": "server:app", "mesh_shape_env": "TT_MESH_SHAPE"},
            "serve": {"port": 8000, "env": {"TT_FUSED": "1"}},
            "serve_profiles": [{"name": "p150", "hardware": "p150", "mesh_device": "P150"},
                               {"name": "cpu", "description": "no card", "env": {"A": "b"}}],
            "default_profile": "p150", "code_dir": "code"}}
    for key, value in changes.items():
        (document if key in document else document["container"])[key] = value
    return document


def manifests():
    yield "package", manifest()
    yield "schema-5", manifest(schema_version="5")
    yield "schema-6", manifest(schema_version="6", capabilities={})
    yield "weights-list", manifest(weights=[{"repo_id": "a/b", "allow_patterns": ["*.json"]}, {"repo_id": "c/d"}])
    yield "no-weights", manifest(weights=None)
    yield "registry", manifest(image={"registry": "ghcr.io", "repository": "o/n", "tag": "v1"})
    yield "mesh", manifest(serve_profiles=[{"name": "x", "hardware": "p300x2", "mesh_device": "(2, 4)"}],
                           default_profile="x")
    yield "bundle", {"schema_version": "5", "name": "old", "arch": "wormhole", "files": ["a.py"], "container": None}


def main() -> None:
    for name, data in weights():
        path = CORPUS / "safetensors" / (name + ".safetensors")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name, document in manifests():
        path = CORPUS / "manifest" / (name + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What the tests of tt-model share: a home of their own, running the program, packages to serve."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from hub import Hub, git_sha1, sha256  # noqa: F401

BIN = pathlib.Path(os.environ.get("TT_MODEL_BIN", "build/bin/tt-model")).resolve()
WEIGHTS_REPO = "magic-leap-community/superpoint"
PACKAGE = "changh95/superpoint-p150"
SKIP = 77


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)

    def events(self):
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def __repr__(self):
        return "exit %d\n--- stdout\n%s\n--- stderr\n%s" % (self.code, self.out, self.err)


class ManagerTest(unittest.TestCase):
    """A Hub, an empty home, and no Docker unless a test brings one."""

    maxDiff = None

    def setUp(self):
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="tt-model-test-"))
        self.addCleanup(shutil.rmtree, self.tmp, True)
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.env = {k: v for k, v in os.environ.items() if not re.match(r"HF_|HUGGING|TT_|TRANSFORMERS|XDG_|DOCKER", k)}
        self.env.update(HOME=str(self.tmp), HF_ENDPOINT=self.hub.url, NO_COLOR="1",
                        DOCKER_HOST="unix://%s/no-docker.sock" % self.tmp)

    @property
    def root(self):
        return self.tmp / ".cache/tt-model"

    @property
    def cache(self):
        return self.tmp / ".cache/huggingface/hub"

    def repo_dir(self, repo_id, kind="models"):
        return self.cache / (kind + "--" + repo_id.replace("/", "--"))

    def start(self, *args, **env):
        return subprocess.Popen([str(BIN), *map(str, args)], env={**self.env, **env}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_model(self, *args, timeout=120, **env):
        done = subprocess.run([str(BIN), *map(str, args)], env={**self.env, **env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
        return Result(done)

    def ok(self, *args, **env):
        done = self.run_model(*args, **env)
        self.assertEqual(done.code, 0, done)
        return done

    def fails(self, code, *args, **env):
        done = self.run_model(*args, **env)
        self.assertEqual(done.code, code, done)
        return done


def pattern_bytes(n, seed=1):
    """Bytes that differ everywhere, and are the same each time."""
    out = bytearray()
    block = hashlib.sha256(b"%d" % seed).digest()
    while len(out) < n:
        block = hashlib.sha256(block).digest()
        out += block
    return bytes(out[:n])


def weights_files(model=None):
    """A repository of weights in the form of transformers."""
    config = {"architectures": ["SuperPointForKeypointDetection"], "model_type": "superpoint"}
    return {"config.json": json.dumps(config).encode(),
            "preprocessor_config.json": b'{"do_resize": true}',
            "README.md": b"---\nlicense: other\n---\n",
            "model.safetensors": model if model is not None else pattern_bytes(300000)}


def oci_image(files, config=None):
    """image/... of a package: one layer that holds `files` ({path: (mode, bytes)})."""
    tar_bytes = io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w") as tar:
        for path, (mode, data) in sorted(files.items()):
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    layer = gzip.compress(tar_bytes.getvalue(), 6, mtime=0)
    document = {"architecture": "amd64", "os": "linux", "created": "2026-01-01T00:00:00Z", "config": config or {},
                "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(tar_bytes.getvalue())]},
                "history": [{"created": "2026-01-01T00:00:00Z"}]}
    config_bytes = json.dumps(document).encode()
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                           "digest": "sha256:" + sha256(config_bytes), "size": len(config_bytes)},
                "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                            "digest": "sha256:" + sha256(layer), "size": len(layer)}]}
    manifest_bytes = json.dumps(manifest).encode()
    index = {"schemaVersion": 2, "manifests": [
        {"mediaType": manifest["mediaType"], "digest": "sha256:" + sha256(manifest_bytes), "size": len(manifest_bytes),
         "annotations": {"org.opencontainers.image.ref.name": "latest"}}]}
    blobs = {sha256(b): b for b in (config_bytes, layer, manifest_bytes)}
    out = {"image/oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "image/index.json": json.dumps(index).encode()}
    out.update({"image/blobs/sha256/" + digest: data for digest, data in blobs.items()})
    return out, "sha256:" + sha256(config_bytes)


def manifest(digest, name="superpoint-p150", weights=None, **container):
    doc = {"schema_version": "5.1", "name": name, "tt_metal_version": "none", "arch": "blackhole", "device_count": 1,
           "producer": {"tt_kernel_version": "0.1.0", "created_at": "2026-01-01T00:00:00+00:00", "hostname": "test"},
           "weights": weights if weights is not None else {"repo_id": WEIGHTS_REPO, "revision": None},
           "build_key": None, "files": [],
           "container": {"image": {"registry": "hf", "repository": name,
                                   "tag": "tt-model/%s:%s" % (name, digest[7:19]), "digest": digest},
                         "kind": "tt-dit-server", "runtime": {"app": "server:app", "mesh_shape_env": "TT_MESH_SHAPE"},
                         "serve": {"port": 8000, "env": {"TT_FUSED": "1"}},
                         "serve_profiles": [{"name": "p150", "hardware": "p150", "mesh_device": "P150"},
                                            {"name": "cpu", "description": "no card",
                                             "env": {"SUPERPOINT_ENGINE": "cpu"}}],
                         "default_profile": "p150", "code_dir": "code"}}
    doc["container"].update(container)
    return doc


def package_files(files=None, weights=None, name="superpoint-p150", **container):
    image, digest = oci_image(files or {"server": (0o755, pattern_bytes(20000, 7))})
    doc = manifest(digest, name=name, weights=weights, **container)
    return {"README.md": b"---\ntags:\n- tt-model-cache\n---\n# test\n",
            "tt_kernel_manifest.json": json.dumps(doc, indent=2).encode(), "requirements.lock": b"",
            "code/server.py": b"# nothing\n", **image}


def main():
    if not BIN.exists():
        sys.exit("%s is not built" % BIN)
    unittest.main(verbosity=2)

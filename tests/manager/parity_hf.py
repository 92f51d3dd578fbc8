"""The real huggingface_hub and transformers read what tt-model pulled, offline; tt-model reads what they
wrote; and they push and pull against the same Hub as tt-model does, which keeps that Hub honest. Run by
`make manager-parity` with a Python that has both.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

from support import PACKAGE, SKIP, WEIGHTS_REPO, ManagerTest, git_sha1, main, package_files, sha256, weights_files

try:
    import huggingface_hub
except ImportError:
    print("skipped: huggingface_hub is not installed; `make manager-parity` installs it")
    sys.exit(SKIP)

TOP = pathlib.Path(__file__).resolve().parents[2]
CONFIG = {"architectures": ["SuperPointForKeypointDetection"], "model_type": "superpoint",
          "encoder_hidden_sizes": [64, 64, 128, 128], "decoder_hidden_size": 256, "keypoint_decoder_dim": 65,
          "descriptor_decoder_dim": 256, "keypoint_threshold": 0.005, "max_keypoints": -1, "nms_radius": 4,
          "border_removal_distance": 4, "initializer_range": 0.02}


class HuggingFace(ManagerTest):
    def setUp(self):
        super().setUp()
        files = weights_files((TOP / "weights/superpoint.safetensors").read_bytes())
        files["config.json"] = json.dumps(CONFIG).encode()
        files["sub/folder/file.txt"] = b"deep"
        self.files = files
        self.sha = self.hub.commit(WEIGHTS_REPO, files)
        self.package = package_files(weights={"repo_id": WEIGHTS_REPO, "revision": self.sha})
        self.hub.commit(PACKAGE, self.package)

    def python(self, code, **env):
        done = subprocess.run([sys.executable, "-c", code], env={**self.env, "HF_HUB_DISABLE_TELEMETRY": "1", **env},
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.strip().splitlines()

    def test_snapshot_download_reads_ours(self):
        self.ok("pull", PACKAGE, "--with-weights")
        code = "import huggingface_hub as h; print(h.snapshot_download(%r, revision=%r, local_files_only=True))"
        for repo, revision in ((WEIGHTS_REPO, self.sha), (WEIGHTS_REPO, "main"), (PACKAGE, "main")):
            out = self.python(code % (repo, revision), HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_OFFLINE="1")
            self.assertTrue(out[-1].startswith(str(self.repo_dir(repo) / "snapshots")), out)
        out = self.python("import huggingface_hub as h; r = h.scan_cache_dir(); print(len(r.repos), len(r.warnings))")
        self.assertEqual(out[-1], "2 0", "the cache is sound")

    def test_snapshot_download_sees_a_part(self):
        self.ok("pull", PACKAGE, "--with-weights")
        (self.repo_dir(WEIGHTS_REPO) / "snapshots" / self.sha / "model.safetensors").unlink()
        code = ("import huggingface_hub as h\ntry:\n  h.snapshot_download(%r, revision=%r, local_files_only=True)\n"
                "except Exception as e: print(type(e).__name__)")
        out = self.python(code % (WEIGHTS_REPO, self.sha), HF_HUB_OFFLINE="1")
        self.assertEqual(out[-1:], ["IncompleteSnapshotError"])
        self.hub.clear()
        self.ok("pull", PACKAGE, "--with-weights")
        self.assertEqual(self.hub.served, {}, "the blob was still there")

    def test_transformers_reads_ours(self):
        try:
            import torch, transformers  # noqa: F401
        except ImportError:
            self.skipTest("transformers and torch are not installed")
        self.ok("pull", PACKAGE, "--with-weights")
        out = self.python(
            "import torch, transformers as t\n"
            "m = t.SuperPointForKeypointDetection.from_pretrained(%r, revision=%r).eval()\n"
            "print(sum(p.numel() for p in m.parameters()))\n"
            "m2 = t.AutoModelForKeypointDetection.from_pretrained(%r)\n"
            "print(type(m2).__name__)" % (WEIGHTS_REPO, self.sha, WEIGHTS_REPO),
            HF_HUB_OFFLINE="1", HF_ENDPOINT="http://127.0.0.1:9")
        self.assertEqual(out[-2:], ["1300865", "SuperPointForKeypointDetection"])

    def test_ours_reads_theirs(self):
        for repo in (WEIGHTS_REPO, PACKAGE):
            self.python("import huggingface_hub as h; h.snapshot_download(%r)" % repo, HF_HUB_DISABLE_XET="1")
        self.hub.clear()
        self.ok("pull", PACKAGE, "--with-weights")
        self.assertEqual(self.hub.served, {}, "nothing had to be fetched")

    def test_their_download_goes_on_after_ours(self):
        """A pull that was killed leaves nothing that they take for whole."""
        self.hub.fault("^storage", slow=0.02)
        run = self.start("pull", PACKAGE, "--with-weights")
        model = self.files["model.safetensors"]
        while self.hub.bytes_of(model) < 500000 and run.poll() is None:
            pass
        run.kill()
        run.communicate()
        self.hub.clear()
        out = self.python("import huggingface_hub as h; print(h.snapshot_download(%r, revision=%r))" % (WEIGHTS_REPO, self.sha),
                          HF_HUB_DISABLE_XET="1")
        self.assertEqual((pathlib.Path(out[-1]) / "model.safetensors").read_bytes(), model)

    def test_both_at_once(self):
        self.hub.fault("^storage", slow=0.01)
        ours = self.start("pull", PACKAGE, "--with-weights")
        self.python("import huggingface_hub as h; h.snapshot_download(%r)" % WEIGHTS_REPO, HF_HUB_DISABLE_XET="1")
        _, err = ours.communicate(timeout=100)
        self.assertEqual(ours.returncode, 0, err)
        path = self.repo_dir(WEIGHTS_REPO) / "snapshots" / self.sha / "model.safetensors"
        self.assertEqual(path.read_bytes(), self.files["model.safetensors"])

    def test_their_push_our_pull(self):
        """upload_folder of huggingface_hub against the same Hub: the Hub of the tests is one that it knows."""
        self.hub.tokens["hf_author"] = {"name": "owner"}
        folder = self.tmp / "folder"
        for path, data in package_files(name="theirs", weights={"repo_id": WEIGHTS_REPO}).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        self.python("import huggingface_hub as h; a = h.HfApi(); a.create_repo('owner/theirs', private=True, exist_ok=True)\n"
                    "a.upload_folder(repo_id='owner/theirs', folder_path=%r)" % str(folder), HF_TOKEN="hf_author",
                    HF_HUB_DISABLE_XET="1")
        self.ok("pull", "owner/theirs", HF_TOKEN="hf_author")
        self.assertEqual((self.repo_dir("owner/theirs") / "snapshots" / self.hub.repos["owner/theirs"].refs["main"] /
                          "README.md").read_bytes(), (folder / "README.md").read_bytes())

    def test_our_push_their_download(self):
        """What our push leaves on the Hub, as HfApi lists and fetches it: large files as LFS objects, the rest as
        git blobs, and what a later push removes is gone."""
        self.hub.tokens["hf_author"] = {"name": "owner"}
        folder = self.tmp / "folder"
        files = package_files(name="ours", weights={"repo_id": WEIGHTS_REPO})
        files["code/gone.py"] = b"# not for long"
        for path, data in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        self.ok("push", folder, "--repo", "owner/ours", HF_TOKEN="hf_author")
        (folder / "code/gone.py").unlink()
        self.ok("push", folder, "--repo", "owner/ours", HF_TOKEN="hf_author")
        del files["code/gone.py"]
        out = self.python(
            "import huggingface_hub as h, json\n"
            "a = h.HfApi()\n"
            "i = a.model_info('owner/ours', files_metadata=True)\n"
            "print(json.dumps([i.private, i.sha, {s.rfilename: [s.size, s.blob_id, s.lfs and s.lfs.sha256] for s in i.siblings}]))\n"
            "print(h.snapshot_download('owner/ours'))", HF_TOKEN="hf_author", HF_HUB_DISABLE_XET="1")
        private, sha, listed = json.loads(out[-2])
        self.assertTrue(private)
        self.assertEqual(sha, self.hub.repos["owner/ours"].refs["main"])
        readme = listed.pop("README.md")  # the push writes the repository's name into it
        large = {path for path, (_, _, lfs) in listed.items() if lfs}
        self.assertEqual(large, {path for path, data in files.items() if self.hub.is_lfs(data)})
        self.assertTrue(large and readme)
        snapshot = pathlib.Path(out[-1])
        for path, data in files.items():
            if path != "README.md":
                self.assertEqual((snapshot / path).read_bytes(), data, path)
                self.assertEqual(listed[path][:2], [len(data), git_sha1(data)])
                self.assertEqual(listed[path][2], sha256(data) if path in large else None)
        self.assertEqual({str(p.relative_to(snapshot)) for p in snapshot.rglob("*") if p.is_file()},
                         set(files) | {".gitattributes"})

    def test_login_is_shared(self):
        self.hub.tokens["hf_me"] = {"name": "me"}
        self.ok("login", "--token", "hf_me")
        self.assertEqual(self.python("import huggingface_hub as h; print(h.get_token(), h.whoami()['name'])")[-1], "hf_me me")


if __name__ == "__main__":
    main()

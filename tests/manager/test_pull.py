"""tt-model pull against a Hub that keeps to the protocol, and against one that does not."""
import email.utils
import json
import os
import signal
import stat
import time
import unittest

from support import (PACKAGE, WEIGHTS_REPO, ManagerTest, git_sha1, main, manifest, package_files, pattern_bytes, sha256,
                     weights_files)


class Pull(ManagerTest):
    def setUp(self):
        super().setUp()
        self.model = pattern_bytes(1000000)
        self.weights_sha = self.hub.commit(WEIGHTS_REPO, weights_files(self.model))
        self.files = package_files(weights={"repo_id": WEIGHTS_REPO, "revision": self.weights_sha})
        self.sha = self.hub.commit(PACKAGE, self.files)

    def assert_whole(self, repo_id, sha, files):
        """The cache holds exactly what the Hub has, in the layout of the Hugging Face tools."""
        base = self.repo_dir(repo_id)
        for path, data in files.items():
            link = base / "snapshots" / sha / path
            self.assertTrue(link.is_symlink(), path)
            etag = sha256(data) if self.hub.is_lfs(data) else git_sha1(data)
            self.assertEqual(os.readlink(link), "../" * (2 + path.count("/")) + "blobs/" + etag)
            self.assertEqual(link.read_bytes(), data, path)
        left = [p.name for p in (base / "blobs").iterdir() if ".incomplete" in p.name]
        self.assertEqual(left, [])

    def test_everything(self):
        done = self.ok("pull", PACKAGE, "--with-weights")
        self.assert_whole(PACKAGE, self.sha, self.files)
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))
        self.assertEqual((self.repo_dir(PACKAGE) / "refs/main").read_text(), self.sha)
        self.assertEqual((self.repo_dir(WEIGHTS_REPO) / "refs/main").read_text(), self.weights_sha)
        self.assertIn("pulled " + PACKAGE, done.err)
        self.assertIn("tt-model serve " + PACKAGE, done.err)
        self.assertEqual(done.out, "")
        self.assertIn("noncommercial research", done.err)
        record = json.loads((self.root / "installed.json").read_text())[PACKAGE]
        self.assertEqual(record["revision"], self.sha)
        self.assertEqual(record["profiles"], ["p150", "cpu"])
        self.assertTrue(record["container"])
        pulled = self.root / "pulled/changh95__superpoint-p150/tt_kernel_manifest.json"
        self.assertEqual(record["manifest"], str(pulled))
        self.assertEqual(json.loads(pulled.read_text()), json.loads(self.files["tt_kernel_manifest.json"]))

        self.hub.clear()
        again = self.ok("pull", PACKAGE, "--with-weights")
        self.assertEqual(self.hub.served, {}, "nothing is fetched twice")
        self.assertNotIn("noncommercial research", again.err, "the licence is shown once")

    def test_token_goes_to_the_hub_only(self):
        self.hub.tokens["hf_secret"] = {"name": "me"}
        self.hub.repos[PACKAGE].private = True
        self.fails(1, "pull", PACKAGE)
        self.hub.clear()
        self.ok("pull", PACKAGE, "--with-weights", HF_TOKEN="hf_secret")
        places = {place for place, _, _, _ in self.hub.requests}
        self.assertEqual(places, {"hub", "storage"})
        for place, _, path, headers in self.hub.requests:
            self.assertEqual("Authorization" in headers, place == "hub", path)

    def test_token_order(self):
        self.hub.repos[PACKAGE].private = True
        self.hub.tokens["hf_file"] = {"name": "me"}
        token = self.tmp / ".cache/huggingface/token"
        token.parent.mkdir(parents=True)
        token.write_text("hf_file\n")
        self.ok("pull", PACKAGE)
        self.assertIn("rejected the token", self.fails(9, "pull", PACKAGE, HF_TOKEN="hf_wrong").err)
        other = self.tmp / "other"
        other.write_text("hf_wrong")
        self.fails(9, "pull", PACKAGE, HF_TOKEN_PATH=str(other))

    def test_revisions(self):
        old = self.sha
        changed = dict(self.files, **{"README.md": b"newer"})
        new = self.hub.commit(PACKAGE, {"README.md": b"newer"})
        self.hub.repos[PACKAGE].refs["v1"] = old
        self.ok("pull", PACKAGE + "@v1")
        self.assert_whole(PACKAGE, old, self.files)
        self.assertEqual((self.repo_dir(PACKAGE) / "refs/v1").read_text(), old)
        record = json.loads((self.root / "installed.json").read_text())[PACKAGE]
        self.assertEqual((record["revision"], record["requested_revision"]), (old, "v1"))
        self.ok("pull", PACKAGE)
        self.assert_whole(PACKAGE, new, changed)
        self.assertIn("no such revision", self.fails(1, "pull", PACKAGE + "@nope").err)
        for bad in ("../x", "/etc", "a b", ""):
            self.fails(2, "pull", PACKAGE + "@" + bad)

    def test_errors_tell_themselves_apart(self):
        self.assertIn("does not have", self.fails(1, "pull", "no/body").err)
        self.hub.commit("plain/model", {"config.json": b"{}"})
        self.assertIn("not a package", self.fails(7, "pull", "plain/model").err)
        self.hub.repos[WEIGHTS_REPO].gated = True
        done = self.fails(9, "pull", PACKAGE, "--with-weights")
        self.assertIn("gated", done.err)
        del self.hub.repos[WEIGHTS_REPO]
        self.assertIn("weights of this package", self.fails(1, "pull", PACKAGE, "--with-weights").err)
        self.assertIn("HF_HUB_OFFLINE", self.fails(8, "pull", PACKAGE, HF_HUB_OFFLINE="1").err)
        self.assertIn("cannot reach", self.fails(8, "pull", PACKAGE, HF_ENDPOINT="http://127.0.0.1:9").err)
        done = self.run_model("pull", "no/body", "--json")
        self.assertEqual(done.json()["error"]["exit_code"], 1)

    def test_cut_at_every_tenth(self):
        self.hub.fault("^storage", cut=0.1)
        self.ok("pull", PACKAGE, "--with-weights", TT_MODEL_DOWNLOAD_JOBS="2")
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))
        self.assertEqual(self.hub.bytes_of(self.model), len(self.model), "no byte came twice")

    def test_slow(self):
        self.hub.fault("^storage", slow=0.01)
        self.ok("pull", PACKAGE, "--with-weights")
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))

    def test_segments(self):
        self.hub.fault("^storage", cut=0.05)
        self.ok("pull", PACKAGE, "--with-weights", TT_MODEL_DOWNLOAD_SEGMENT="65536")
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))
        self.assertEqual(self.hub.bytes_of(self.model), len(self.model))
        ranges = {h.get("Range") for place, _, _, h in self.hub.requests if place == "storage"}
        self.assertGreater(len(ranges), 15)

    def test_server_without_ranges(self):
        self.hub.fault("^storage", times=1, cut=0.5)
        self.hub.fault("^storage", no_range=True)
        self.ok("pull", PACKAGE, "--with-weights", TT_MODEL_DOWNLOAD_SEGMENT="65536")
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))

    def test_wrong_hash_once_and_always(self):
        self.hub.fault("^storage.*" + sha256(self.model), times=1, wrong_hash=True)
        self.ok("pull", PACKAGE, "--with-weights")
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))
        self.ok("rm", PACKAGE, "--include-weights", "-y")
        self.hub.fault("^storage.*" + sha256(self.model), wrong_hash=True)
        done = self.fails(1, "pull", PACKAGE, "--with-weights")
        self.assertIn("wrong bytes", done.err)
        self.assertFalse((self.repo_dir(WEIGHTS_REPO) / "snapshots" / self.weights_sha / "model.safetensors").exists())
        blobs = [p for p in (self.repo_dir(WEIGHTS_REPO) / "blobs").iterdir() if p.name.startswith(sha256(self.model))]
        self.assertEqual(blobs, [])

    def test_wrong_hash_of_a_small_file(self):
        self.hub.fault("^hub.*resolve.*README", wrong_hash=True)
        self.assertIn("README.md came with the wrong bytes", self.fails(1, "pull", PACKAGE).err)

    def test_wrong_length(self):
        for lie in (1000, -1000):
            self.hub.faults.clear()
            self.hub.fault("^storage.*" + sha256(self.model), wrong_length=lie)
            self.assertIn("the Hub's list says", self.fails(1, "pull", PACKAGE, "--with-weights").err)

    def waits(self):
        """Seconds between the two requests for whatever was asked for twice."""
        asked = {}
        for (_, _, path, _), moment in zip(self.hub.requests, self.hub.moments):
            if "/resolve/" in path:
                asked.setdefault(path, []).append(moment)
        twice = [times for times in asked.values() if len(times) > 1]
        self.assertEqual([len(times) for times in twice], [2])
        return twice[0][1] - twice[0][0]

    def test_busy_hub(self):
        self.hub.fault("^hub.*resolve", times=1, status=429, retry_after=3)
        self.hub.fault("^hub/api", times=3, status=500)
        self.ok("pull", PACKAGE, "--with-weights")
        self.assertGreater(self.waits(), 2.9, "Retry-After is kept: by itself it would wait for half a second")
        self.assert_whole(PACKAGE, self.sha, self.files)
        self.hub.fault("^hub/api", status=500)
        self.assertIn("500", self.fails(8, "pull", PACKAGE).err)

    def test_retry_after_as_a_date(self):
        """RFC 9110, 10.2.3: a number of seconds, or the moment."""
        self.hub.fault("^hub.*resolve", times=1, status=503,
                       retry_after=lambda: email.utils.formatdate(time.time() + 4, usegmt=True))
        self.ok("pull", PACKAGE, "--with-weights")
        self.assertGreater(self.waits(), 1.9, "two fractions of a second are lost to whole seconds")
        self.assert_whole(PACKAGE, self.sha, self.files)

    def test_retry_after_that_has_passed_or_is_nonsense(self):
        for i, text in enumerate(("Fri, 31 Dec 1999 23:59:59 GMT", "soon", "-5")):
            self.hub.clear()
            self.hub.commit(PACKAGE, {"more.txt": text.encode()})
            self.hub.fault("^hub.*resolve", times=1, status=503, retry_after=text)
            self.ok("pull", PACKAGE)
            self.assertGreater(self.waits(), 0.4, text + ": by itself it waits for half a second")

    def test_two_at_once(self):
        self.hub.fault("^storage", slow=0.01)
        runs = [self.start("pull", PACKAGE, "--with-weights") for _ in range(2)]
        for run in runs:
            _, err = run.communicate(timeout=100)
            self.assertEqual(run.returncode, 0, err)
        self.assert_whole(PACKAGE, self.sha, self.files)
        self.assertEqual(self.hub.bytes_of(self.model), len(self.model), "each byte came once")

    def kill_and_resume(self, sig, **env):
        self.hub.fault("^storage.*" + sha256(self.model), slow=0.1)
        run = self.start("pull", PACKAGE, "--with-weights", **env)
        deadline = time.monotonic() + 60
        while self.hub.bytes_of(self.model) < 400000 and time.monotonic() < deadline:
            time.sleep(0.01)
        run.send_signal(sig)
        _, err = run.communicate(timeout=60)
        parts = (self.repo_dir(WEIGHTS_REPO) / "blobs").glob(sha256(self.model) + "*")
        kept = sum(p.stat().st_size for p in parts)
        self.assertGreater(kept, 300000)
        self.assertFalse((self.repo_dir(WEIGHTS_REPO) / "snapshots" / self.weights_sha / "model.safetensors").exists())
        time.sleep(0.3)
        self.hub.clear()
        done = self.ok("pull", PACKAGE, "--with-weights", **env)
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))
        self.assertEqual(self.hub.bytes_of(self.model), len(self.model) - kept, "what was whole was not fetched again")
        self.assertIn("resuming a partial download", done.err)
        return run.returncode, err

    def test_kill_and_resume(self):
        self.kill_and_resume(signal.SIGKILL)

    def test_kill_and_resume_in_segments(self):
        self.kill_and_resume(signal.SIGKILL, TT_MODEL_DOWNLOAD_SEGMENT="65536", TT_MODEL_DOWNLOAD_JOBS="2")

    def test_parts_that_a_kill_left_behind(self):
        """Empty, overtaken by the prefix, of another segment size: used or removed, never in the way."""
        blobs = self.repo_dir(WEIGHTS_REPO) / "blobs"
        blobs.mkdir(parents=True)
        name = str(blobs / (sha256(self.model) + ".incomplete"))
        for at, end in ((None, 140000), (65536, 131072), (131072, 150000), (196608, 196608), (262144, 300000), (7, 9)):
            with open(name if at is None else "%s.%d" % (name, at), "wb") as f:
                f.write(self.model[at or 0 : end])
        self.ok("pull", PACKAGE, "--with-weights", TT_MODEL_DOWNLOAD_SEGMENT="65536")
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))
        self.assertEqual(self.hub.bytes_of(self.model), len(self.model) - 150000 - (300000 - 262144))

    def test_interrupt_and_resume(self):
        code, err = self.kill_and_resume(signal.SIGINT)
        self.assertEqual(code, 130)
        self.assertIn("goes on where it stopped", err)

    def test_disk_space(self):
        huge = 1 << 60
        describe = self.hub.hub.RequestHandlerClass.describe

        def lie(handler, repo_id, repo, sha, blobs):
            doc = describe(handler, repo_id, repo, sha, blobs)
            for entry in doc["siblings"]:
                if entry["rfilename"] == "model.safetensors" and blobs:
                    entry["lfs"]["size"] = entry["size"] = huge
            return doc

        self.hub.hub.RequestHandlerClass.describe = lie
        self.addCleanup(setattr, self.hub.hub.RequestHandlerClass, "describe", describe)
        done = self.fails(1, "pull", PACKAGE, "--with-weights")
        self.assertIn("not enough disk space", done.err)
        self.assertEqual(self.hub.bytes_of(self.model), 0)

    def test_mirror_that_gives_no_digests(self):
        describe = self.hub.hub.RequestHandlerClass.describe
        self.hub.hub.RequestHandlerClass.describe = lambda h, i, r, s, b: describe(h, i, r, s, False)
        self.addCleanup(setattr, self.hub.hub.RequestHandlerClass, "describe", describe)
        self.ok("pull", PACKAGE, "--with-weights")
        self.assert_whole(WEIGHTS_REPO, self.weights_sha, weights_files(self.model))

    def test_cache_places(self):
        hub = self.tmp / "elsewhere"
        self.ok("pull", PACKAGE, HF_HUB_CACHE=str(hub))
        self.assertTrue((hub / "models--changh95--superpoint-p150/snapshots" / self.sha / "README.md").exists())
        self.ok("pull", PACKAGE, HF_HOME=str(self.tmp / "home"), XDG_CACHE_HOME=str(self.tmp / "xdg"))
        self.assertTrue((self.tmp / "home/hub/models--changh95--superpoint-p150/refs/main").exists())
        self.assertTrue((self.tmp / "xdg/tt-model/installed.json").exists())
        (self.tmp / "old/tt-kernel").mkdir(parents=True)
        self.ok("pull", PACKAGE, XDG_CACHE_HOME=str(self.tmp / "old"))
        self.assertTrue((self.tmp / "old/tt-kernel/installed.json").exists())

    def test_events(self):
        done = self.ok("pull", PACKAGE, "--with-weights", TT_MODEL_PROGRESS="ndjson")
        events = done.events()
        self.assertEqual(len(events), len(done.out.splitlines()))
        steps = [(e["key"], e["state"]) for e in events if e["event"] == "step"]
        self.assertIn(("weights", "start"), steps)
        self.assertIn(("weights", "done"), steps)
        progress = [e for e in events if e["event"] == "progress"]
        self.assertTrue(progress)
        self.assertTrue(all(0 <= e["done"] <= e["total"] and e["unit"] == "bytes" for e in progress), progress)
        failed = self.run_model("pull", "no/body", TT_MODEL_PROGRESS="ndjson").events()[-1]
        self.assertEqual((failed["event"], failed["exit_code"]), ("error", 1))
        self.assertTrue(failed["cause"] and failed["actions"])

    def test_list_info_profiles_rm(self):
        self.assertEqual(self.ok("list").out, "No bundles installed.\n")
        self.ok("pull", PACKAGE, "--with-weights")
        self.assertIn(PACKAGE, self.ok("list").out)
        row = self.ok("list", "--json").json()[0]
        self.assertEqual((row["id"], row["arch"], row["profile"]), (PACKAGE, "blackhole", "p150"))
        self.assertTrue(row["weights"][0]["cached"])
        info = self.ok("info", PACKAGE).out
        document, end = json.JSONDecoder().raw_decode(info)
        self.assertEqual(document["name"], "superpoint-p150")
        self.assertIn("compatibility", info[end:])
        self.assertIn("[FATAL] arch: bundle='blackhole' local='wormhole_b0'",
                      self.ok("info", PACKAGE, "--arch", "wormhole_b0").out)
        self.assertIn("p150 (default)", self.ok("profiles", PACKAGE).out)
        self.assertEqual([p["chips"] for p in self.ok("profiles", PACKAGE, "--json").json()], [1, 0])
        self.ok("rm", PACKAGE)
        self.assertFalse(self.repo_dir(PACKAGE).exists())
        self.assertFalse((self.root / "pulled/changh95__superpoint-p150").exists())
        self.assertTrue(self.repo_dir(WEIGHTS_REPO).exists(), "weights stay")
        self.fails(1, "rm", PACKAGE)
        self.ok("pull", PACKAGE)
        self.ok("rm", "--all", "--yes", "--include-weights")
        self.assertFalse(self.repo_dir(WEIGHTS_REPO).exists())
        self.assertEqual(json.loads((self.root / "installed.json").read_text()), {})

    def test_what_the_python_tool_left(self):
        """An index and a manifest as its version 0.1.0 writes them, with a venv bundle beside: read, served with the
        very flags that it would use, and left as they are where they are not ours."""
        other = {"repo_id": "some/bundle", "container": False, "venv": "/somewhere", "arch": "wormhole_b0"}
        pulled = self.root / "pulled/changh95__superpoint-p150/tt_kernel_manifest.json"
        digest = "sha256:" + "0123456789ab" + "0" * 52
        doc = manifest(digest, weights={"repo": WEIGHTS_REPO, "revision": "7" * 40, "allow_patterns": None},
                       serve={"port": 8000, "hardware": "p150", "mesh_device": "P150", "args": [], "env": {"TT_FUSED": "1"}},
                       serve_profiles=[{"name": "default"}], default_profile=None, verify=[], card=None,
                       built={"repo": PACKAGE, "tt_model_version": "0.1.0", "tt_metal": {"sha": "8b98410e", "dirty": False}})
        doc.update(kernel_count=0, fast_path_kernels=None, mesh=None, entrypoint=None, deps={}, auxiliary_weights=[])
        pulled.parent.mkdir(parents=True)
        pulled.write_text(json.dumps(doc, indent=2))
        record = {"repo_id": PACKAGE, "container": True, "image": "tt-model/superpoint-p150:0123456789ab",
                  "revision": self.sha, "manifest": str(pulled), "arch": "blackhole", "image_digest": digest,
                  "image_loaded_id": digest, "profile": "default", "profiles": ["default"]}
        (self.root / "installed.json").write_text(json.dumps({"some/bundle": other, PACKAGE: record}, indent=2))
        self.hub.clear()
        rows = self.ok("list").out
        self.assertIn(PACKAGE + "  container  blackhole  image 0123456789ab", rows)
        self.assertIn("some/bundle", rows)
        self.assertEqual(self.ok("profiles", PACKAGE, "--json").json()[0]["chips"], 1)
        words = self.ok("serve", PACKAGE, "--print", "--local-only").out.split()
        end = words.index(record["image"])
        pairs = sorted(zip(words[3:end:2], words[4:end:2]))
        hf, own, name = self.tmp / ".cache/huggingface", self.root / "superpoint-p150", "org.tenstorrent.tt-model"
        snapshot = "/hf/hub/models--magic-leap-community--superpoint/snapshots/" + "7" * 40
        self.assertEqual(pairs, sorted([
            ("--name", "tt-model-superpoint-p150-default"), ("--user", "%d:%d" % (os.getuid(), os.getgid())),
            ("--label", name + "=superpoint-p150"), ("--label", name + ".profile=default"), ("--label", name + ".repo=" + PACKAGE),
            ("--device", "/dev/tenstorrent:/dev/tenstorrent"), ("--ipc", "host"),
            ("--mount", "type=bind,src=/dev/hugepages-1G,dst=/dev/hugepages-1G"),
            ("--volume", "%s:/hf" % hf), ("--env", "HF_HOME=/hf"),
            ("--volume", "%s/cache:/cache" % own), ("--env", "TT_METAL_CACHE=/cache"),
            ("--volume", "%s/weights:/weight-cache" % own), ("--env", "TT_DIT_CACHE_DIR=/weight-cache"),
            ("--volume", "%s/tensors:/tensor-cache" % own), ("--env", "TT_CACHE_PATH=/tensor-cache"),
            ("--publish", "20000:20000"), ("--env", "HF_MODEL=" + snapshot), ("--env", "MESH_DEVICE=P150"),
            ("--env", "TT_FUSED=1"), ("--env", "TT_MESH_SHAPE=1x1"), ("--env", "TT_MODEL_WEIGHTS_REVISION=" + "7" * 40),
            ("--env", "TT_MESH_GRAPH_DESC_PATH=/opt/tt-metal/tt_metal/fabric/mesh_graph_descriptors/"
             "p150_mesh_graph_descriptor.textproto")]))
        self.assertEqual(" ".join(words[end + 1 :]), "python -m uvicorn --host 0.0.0.0 --port 20000 --lifespan on server:app")
        self.assertEqual(self.hub.requests, [])
        # Our pull keeps what it does not know, and writes a record that has all that the other one has.
        self.ok("pull", PACKAGE)
        index = json.loads((self.root / "installed.json").read_text())
        self.assertEqual(index["some/bundle"], other)
        self.assertLessEqual(set(record) - {"image_loaded_id"}, set(index[PACKAGE]))
        self.ok("rm", PACKAGE)
        self.assertEqual(json.loads((self.root / "installed.json").read_text()), {"some/bundle": other})

    def test_login_search_version(self):
        self.hub.tokens["hf_new"] = {"name": "me"}
        self.assertIn("Logged in as me", self.ok("login", "--token", "hf_new").out)
        token = self.tmp / ".cache/huggingface/token"
        self.assertEqual(token.read_text(), "hf_new")
        self.assertEqual(stat.S_IMODE(token.stat().st_mode), 0o600)
        self.fails(9, "login", "--token", "hf_bad")
        self.assertEqual(token.read_text(), "hf_new", "a token that does not work is not kept")
        self.hub.repos[PACKAGE].tags = ["tt-model-cache", "blackhole"]
        rows = self.ok("search", "superpoint", "--json").json()
        self.assertEqual([r["id"] for r in rows], [PACKAGE])
        self.assertEqual(set(rows[0]), {"id", "private", "downloads", "last_modified"})
        self.assertIn("No matching", self.ok("search", "--catalog").out)
        self.assertRegex(self.ok("--version").out, r"^\d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    main()

"""tt-model package and push: what is built, what is refused, what reaches the Hub."""
import hashlib
import gzip
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import unittest

from support import PACKAGE, ManagerTest, main, pattern_bytes, sha256

YAML = """schema: "5.1"
repo: owner/demo
name: demo
weights: {repo: some/weights, revision: v1}
kind: http-server
arch: blackhole
source:
  extra_code:
    - root: code
      paths: [a, a-b, top.py]
image:
  rootfs: rootfs
  entrypoint: [/bin/server]
  env: {HOME: /}
runtime:
  command: [serve, --port, "{port}"]
serve:
  port: 8000
serve_profiles:
  - name: one
    hardware: p150
    mesh_device: P150
  - name: two
default_profile: one
card:
  description: A demo.
  performance: "PCC {{report.json#score.pcc|%.3f}} on {{report.json#machine}}"
  limitations: None known.
  license: {id: apache-2.0}
"""


class Package(ManagerTest):
    def setUp(self):
        super().setUp()
        self.src = self.tmp / "src"
        for path, data in {"code/a/x.py": b"1", "code/a-b/x.py": b"2", "code/top.py": b"3", "code/a/skip.pyc": b"4",
                           "code/a/__pycache__/y": b"5", "code/a/model.safetensors": b"6",
                           "rootfs/bin/server": pattern_bytes(50000), "rootfs/etc/" + "long" * 40: b"7",
                           "report.json": json.dumps({"score": {"pcc": 0.99987}, "machine": "a <machine>"}).encode()}.items():
            target = self.src / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        os.chmod(self.src / "rootfs/bin/server", 0o755)
        (self.src / "rootfs/lib").symlink_to("usr/lib")
        self.yaml = self.src / "tt-model.yaml"
        self.yaml.write_text(YAML)
        self.out = self.tmp / "out"
        self.hub.tokens["hf_author"] = {"name": "owner"}

    def package(self, **env):
        return self.ok("package", "--container", self.yaml, "--out", self.out, "--json",
                       **{"SOURCE_DATE_EPOCH": "1700000000", **env}).json()

    def test_what_is_built(self):
        built = self.package()
        doc = json.loads((self.out / "tt_kernel_manifest.json").read_text())
        self.assertEqual((doc["schema_version"], doc["name"], doc["device_count"]), ("5.1", "demo", 1))
        self.assertEqual(doc["weights"]["repo_id"], "some/weights")
        self.assertEqual(doc["container"]["image"],
                         {"registry": "hf", "repository": "demo", "tag": built["image"], "digest": built["image_digest"]})
        self.assertEqual([p["name"] for p in doc["container"]["serve_profiles"]], ["one", "two"])
        self.assertEqual(doc["container"]["built"]["created_at"], "2023-11-14T22:13:20+00:00")
        staged = sorted(str(p.relative_to(self.out / "code")) for p in (self.out / "code").rglob("*") if p.is_file())
        self.assertEqual(staged, ["a-b/x.py", "a/x.py", "top.py"])
        # The digest, as Python's own sorting of paths gives it: component by component.
        digest = hashlib.sha256()
        for path in sorted(p for p in (self.out / "code").rglob("*") if p.is_file()):
            digest.update(path.relative_to(self.out / "code").as_posix().encode() + path.read_bytes())
        self.assertEqual(doc["container"]["built"]["code_sha256"], digest.hexdigest())

    def test_the_image(self):
        built = self.package()
        index = json.loads((self.out / "image/index.json").read_text())
        blobs = self.out / "image/blobs/sha256"
        for path in blobs.iterdir():
            self.assertEqual(sha256(path.read_bytes()), path.name)
        manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_text())
        config = json.loads((blobs / manifest["config"]["digest"][7:]).read_text())
        layer = (blobs / manifest["layers"][0]["digest"][7:]).read_bytes()
        self.assertEqual(manifest["config"]["digest"], built["image_digest"])
        self.assertEqual(config["config"]["Labels"]["org.tenstorrent.tt-model.repo"], "owner/demo")
        self.assertEqual(config["config"]["Entrypoint"], ["/bin/server"])
        plain = gzip.decompress(layer)
        self.assertEqual(config["rootfs"]["diff_ids"], ["sha256:" + sha256(plain)])
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            entries = {m.name: m for m in tar.getmembers()}
            self.assertEqual(entries["bin/server"].mode, 0o755)
            self.assertEqual(tar.extractfile("bin/server").read(), pattern_bytes(50000))
            self.assertEqual(tar.extractfile("etc/" + "long" * 40).read(), b"7")
            self.assertEqual(entries["lib"].linkname, "usr/lib")
            self.assertEqual({(m.uid, m.gid, m.mtime) for m in tar.getmembers()}, {(0, 0, 1700000000)})
        if shutil.which("skopeo"):
            seen = subprocess.run(["skopeo", "inspect", "oci:%s:latest" % (self.out / "image")], check=True,
                                  capture_output=True, text=True)
            self.assertEqual(json.loads(seen.stdout)["Labels"]["org.tenstorrent.tt-model"], "demo")

    def test_the_same_files_give_the_same_bytes(self):
        first = self.package()
        shutil.copytree(self.src, self.tmp / "elsewhere", symlinks=True)
        self.yaml = self.tmp / "elsewhere/tt-model.yaml"
        for path in (self.tmp / "elsewhere").rglob("*"):
            if not path.is_symlink():
                os.utime(path, (1, 1))
        self.assertEqual(self.package()["image_digest"], first["image_digest"])
        (self.tmp / "elsewhere/rootfs/bin/server").write_bytes(b"other")
        self.assertNotEqual(self.package()["image_digest"], first["image_digest"])

    def test_the_card(self):
        self.package()
        card = (self.out / "README.md").read_text()
        self.assertTrue(card.startswith("---\ntags:\n- blackhole\n- http-server\n- p150\n- tt-model-cache\n- tt-model-container\n"
                                        "license: apache-2.0\n"))
        self.assertIn("PCC 1.000 on a <machine>", card)
        titles = [line[3:] for line in card.splitlines() if line.startswith("## ")]
        self.assertEqual(titles, ["At a glance", "Intended use", "Quickstart", "Serve profiles", "Using it",
                                  "Expected performance", "Limitations", "Risks", "Licensing", "Related packages",
                                  "Feedback", "Provenance"])
        self.assertIn("Not provided by the package author.", card)
        self.assertNotIn("verified", card)
        (self.src / "report.json").write_text("{}")
        done = self.fails(9, "package", "--container", self.yaml, "--out", self.out)
        self.assertIn("score.pcc", done.err)

    def test_provenance(self):
        run = lambda *a: subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *a], cwd=self.src, check=True,
                                        capture_output=True, text=True).stdout.strip()
        run("init", "-q")
        run("remote", "add", "origin", "https://me:secret@example.org/x.git")
        run("add", ".")
        run("commit", "-qm", "first")
        self.package(SOURCE_DATE_EPOCH="")
        built = json.loads((self.out / "tt_kernel_manifest.json").read_text())["container"]["built"]
        self.assertEqual((built["source"]["sha"], built["source"]["dirty"]), (run("rev-parse", "HEAD"), False))
        self.assertEqual(built["source"]["remote"], "https://example.org/x.git", "no password goes out")
        (self.src / "code/top.py").write_text("changed")
        self.package()
        built = json.loads((self.out / "tt_kernel_manifest.json").read_text())["container"]["built"]
        self.assertTrue(built["source"]["dirty"])

    def test_errors_name_the_line(self):
        cases = {
            ('schema: "5.1"', "schema: 5.1"): (1, "in quotes"),
            ("repo: owner/demo", "repo: demo"): (2, "owner/name"),
            ("name: demo\n", "name: Demo\n"): (3, "a-z"),
            ("revision: v1", "revision: ../x"): (4, "revision"),
            ("kind: http-server", "kind: other"): (5, "must be"),
            ("arch: blackhole", "arch: grayskull"): (6, "must be"),
            ("paths: [a, a-b, top.py]", "paths: [../x]"): (10, "relative path"),
            ("paths: [a, a-b, top.py]", "paths: [nowhere]"): (10, "is not there"),
            ("  entrypoint: [/bin/server]", "  entry: [/bin/server]"): (13, "not a key that is known"),
            ("  port: 8000", "  port: 80000"): (18, "not within"),
            ("  port: 8000", "  prot: 8000"): (18, "not known"),
            ("    hardware: p150", "    hardware: p150x2"): (22, "chips"),
            ("  - name: two", "  - name: one"): (23, "second time"),
            ("default_profile: one", "default_profile: three"): (24, "names no profile"),
            ("  description: A demo.", "  descripton: A demo."): (26, "not a key that is known"),
            ("name: demo\n", "name: demo\nname: again\n"): (4, "second time"),
            ("name: demo\n", "name: &x demo\n"): (3, "anchors"),
            ("arch: blackhole", "arch: [blackhole"): (None, ""),
        }
        for (old, new), (line, text) in cases.items():
            self.assertIn(old, YAML)
            self.yaml.write_text(YAML.replace(old, new, 1))
            done = self.fails(9, "package", "--container", self.yaml, "--out", self.out)
            self.assertIn("tt-model.yaml:%s" % (line if line else ""), done.err, new)
            self.assertIn(text, done.err, new)
        self.yaml.write_text("a: " + "[" * 100 + "]" * 100)
        self.assertIn("too deep", self.fails(9, "package", "--container", self.yaml).err)
        self.yaml.write_text("")
        self.fails(9, "package", "--container", self.yaml)

    def test_other_directories_are_left_alone(self):
        self.out.mkdir()
        (self.out / "mine").write_text("mine")
        self.assertIn("left alone", self.fails(1, "package", "--container", self.yaml, "--out", self.out).err)
        self.assertEqual((self.out / "mine").read_text(), "mine")

    def test_push(self):
        self.package()
        self.assertIn("needs a token", self.fails(9, "push", self.out).err)
        self.ok("push", self.out, HF_TOKEN="hf_author")
        repo = self.hub.repos["owner/demo"]
        self.assertTrue(repo.private)
        head = repo.commits[repo.refs["main"]]
        for path in self.out.rglob("*"):
            if path.is_file():
                self.assertEqual(head[str(path.relative_to(self.out))], path.read_bytes(), path)
        self.assertIn("blackhole", repo.tags)
        puts = [p for place, method, p, h in self.hub.requests if place == "storage"]
        self.assertTrue(puts, "the layer went to the storage")
        self.assertFalse([h for place, _, _, h in self.hub.requests if place == "storage" and "Authorization" in h])

        self.hub.clear()
        self.assertIn("nothing had changed", self.ok("push", self.out, HF_TOKEN="hf_author").err)
        self.assertEqual([p for place, _, p, _ in self.hub.requests if place == "storage"], [])
        (self.src / "rootfs/bin/server").write_bytes(pattern_bytes(60000, 2))
        self.package()
        self.ok("push", self.out, HF_TOKEN="hf_author")
        head = repo.commits[repo.refs["main"]]
        names = {p for p in head if p.startswith("image/")}
        self.assertEqual(names, {str(p.relative_to(self.out)) for p in (self.out / "image").rglob("*") if p.is_file()},
                         "blobs that are not used any more are gone")

    def test_push_in_parts_and_with_faults(self):
        self.package()
        self.hub.fault("objects/batch", chunk_size=20000)
        self.hub.fault("^hub/api/models/.*/preupload", times=1, status=503)
        self.ok("push", self.out, HF_TOKEN="hf_author")
        repo = self.hub.repos["owner/demo"]
        self.assertEqual(len(repo.commits[repo.refs["main"]]), 1 + sum(p.is_file() for p in self.out.rglob("*")))
        parts = [p for place, m, p, _ in self.hub.requests if place == "storage" and "part=" in p]
        self.assertGreater(len(parts), 2)

    def test_push_elsewhere_and_publish(self):
        self.package()
        self.hub.tokens["hf_me"] = {"name": "me"}
        self.ok("push", self.out, "--repo", "me/copy", "--publish", HF_TOKEN="hf_me")
        repo = self.hub.repos["me/copy"]
        self.assertFalse(repo.private)
        self.assertIn("tt-model-catalog", repo.tags)
        card = repo.commits[repo.refs["main"]]["README.md"].decode()
        self.assertIn("tt-model serve me/copy\n", card)
        self.assertNotIn("tt-model serve owner/demo", card)
        self.ok("unpublish", "me/copy", HF_TOKEN="hf_me")
        self.assertNotIn("tt-model-catalog", repo.tags)
        self.assertFalse(repo.private)
        self.ok("publish", "me/copy", HF_TOKEN="hf_me")
        self.assertIn("tt-model-catalog", repo.tags)
        self.assertEqual([r["id"] for r in self.ok("search", "--catalog", "--json").json()], ["me/copy"])
        self.fails(2, "push", self.out, "--private", "--public", HF_TOKEN="hf_me")


if __name__ == "__main__":
    main()

"""Packages that mean harm: refused, and nothing is written outside."""
import json
import os
import time
import unittest

from support import PACKAGE, WEIGHTS_REPO, ManagerTest, git_sha1, main, manifest, oci_image, package_files, sha256, weights_files


class Hostile(ManagerTest):
    def setUp(self):
        super().setUp()
        self.hub.commit(WEIGHTS_REPO, weights_files())
        self.canary = self.tmp / "canary"
        self.canary.write_text("untouched")

    def files_outside(self):
        """Everything in the home that is neither the caches nor the canary."""
        allowed = (str(self.tmp / ".cache"), str(self.canary))
        return [str(p) for p in self.tmp.rglob("*") if not str(p).startswith(allowed)]

    def refused(self, *args, code=1, **env):
        done = self.fails(code, *args, **env)
        self.assertEqual(self.files_outside(), [])
        self.assertEqual(self.canary.read_text(), "untouched")
        return done

    def pull_manifest(self, change, code=1):
        """Pull a package whose manifest was changed."""
        files = package_files()
        doc = json.loads(files["tt_kernel_manifest.json"])
        doc = change(doc) or doc
        files["tt_kernel_manifest.json"] = doc if isinstance(doc, bytes) else json.dumps(doc).encode()
        self.hub.commit(PACKAGE, files, replace=True)
        done = self.refused("pull", PACKAGE, code=code)
        self.assertFalse((self.root / "installed.json").exists())
        return done

    def test_names_that_lead_outside(self):
        for name in ("../../../../canary", "/etc/passwd", "a/../../canary", "..", ".", "a//b", "a/./b", "x\\..\\y",
                     "a\nb", "a/" * 600 + "b", "x" * 300, ""):
            files = package_files()
            files["evil"] = b"evil bytes"
            self.hub.commit(PACKAGE, files, replace=True, names={"evil": name})
            done = self.refused("pull", PACKAGE)
            self.assertIn("leads outside", done.err, name)
            self.assertFalse(self.repo_dir(PACKAGE).exists(), "nothing of it was fetched")

    def test_a_file_below_a_file(self):
        files = package_files()
        files.update({"deep": b"a file", "z": b"below it"})
        self.hub.commit(PACKAGE, files, replace=True, names={"z": "deep/below"})
        self.refused("pull", PACKAGE)

    def test_digests_that_are_paths(self):
        describe = self.hub.hub.RequestHandlerClass.describe

        def lie(handler, repo_id, repo, sha, blobs):
            doc = describe(handler, repo_id, repo, sha, blobs)
            for entry in doc["siblings"]:
                entry["blobId"] = "../../../canary"
            return doc

        self.hub.hub.RequestHandlerClass.describe = lie
        self.addCleanup(setattr, self.hub.hub.RequestHandlerClass, "describe", describe)
        self.hub.commit(PACKAGE, package_files())
        self.refused("pull", PACKAGE)

    def test_commits_that_are_paths(self):
        self.hub.commit(PACKAGE, package_files(), sha="../../../../canary")
        self.refused("pull", PACKAGE)

    def test_huge_manifest(self):
        files = package_files()
        files["tt_kernel_manifest.json"] = b" " * 100_000_000
        self.hub.commit(PACKAGE, files, replace=True)
        start = time.monotonic()
        self.assertIn("more than the", self.refused("pull", PACKAGE).err)
        self.assertEqual(self.hub.served, {}, "it is not even fetched")
        local = self.tmp / ".cache/big/tt_kernel_manifest.json"
        local.parent.mkdir(parents=True)
        local.write_bytes(b"[" * 100_000_000)
        self.assertIn("more than the", self.refused("info", local).err)
        self.assertLess(time.monotonic() - start, 30)

    def test_deep_json(self):
        for deep in (b'{"a":' * 100000 + b"1" + b"}" * 100000, b"[" * 1000000):
            self.assertIn("not valid JSON", self.pull_manifest(lambda doc: deep).err)

    def test_names_in_the_manifest(self):
        for name in ("..", "../x", "a/b", "", ".hidden", "UPPER", None, 5, "a..b"):
            self.pull_manifest(lambda doc: doc.update(name=name))

    def test_weights_in_the_manifest(self):
        for weights in ({"repo_id": "../../etc"}, {"repo_id": "a/b", "revision": "../../x"}, {"repo_id": "noslash"},
                        {"repo_id": "a/b", "repo_type": "../x"}, {"repo_id": "a/b", "allow_patterns": [1]}):
            self.pull_manifest(lambda doc: doc.update(weights=weights))

    def test_serve_settings(self):
        def serve(**what):
            return lambda doc: doc["container"]["serve"].update(what)

        for change in (serve(no_such_key=1), serve(port=0), serve(port="8000"), serve(env={"A B": "x"}),
                       serve(env={"A": 1}), serve(args=[{}]), serve(hardware="p999"), serve(mesh_device="(9999, 9999)"),
                       serve(capabilities={"other": "x"})):
            self.pull_manifest(change)
        self.pull_manifest(lambda doc: doc["container"].update(serve_profiles=[{"name": "../x"}]))
        self.pull_manifest(lambda doc: doc["container"].update(serve_profiles=[{"name": "a"}, {"name": "a"}]))
        self.pull_manifest(lambda doc: doc["container"].update(default_profile="nobody"))
        self.pull_manifest(lambda doc: doc["container"]["image"].update(tag="--privileged"))
        self.pull_manifest(lambda doc: doc["container"]["image"].update(digest="sha256:../../x"))

    def test_schemas(self):
        self.pull_manifest(lambda doc: doc.update(schema_version="7"), code=7)
        self.pull_manifest(lambda doc: doc.update(schema_version=5.1), code=7)
        self.pull_manifest(lambda doc: doc.pop("container") and None, code=7)

    def test_unknown_and_old_keys_are_read(self):
        files = package_files()
        doc = json.loads(files["tt_kernel_manifest.json"])
        doc.update(kernel_count=0, fast_path_kernels=None, something_new={"x": [1]}, weights={"repo": WEIGHTS_REPO})
        files["tt_kernel_manifest.json"] = json.dumps(doc).encode()
        self.hub.commit(PACKAGE, files, replace=True)
        self.ok("pull", PACKAGE, "--with-weights")
        self.assertTrue((self.repo_dir(WEIGHTS_REPO) / "refs/main").exists())

    def test_index_that_is_broken(self):
        self.root.mkdir(parents=True)
        for text in ("[]", "{", ""):
            (self.root / "installed.json").write_text(text)
            self.fails(1, "list")
        (self.root / "installed.json").write_text(json.dumps({"../../x": {"container": True}, "a/b": 5}))
        self.ok("list")
        self.ok("rm", "--all", "-y")
        self.assertEqual(self.canary.read_text(), "untouched")

    def test_rm_follows_no_links(self):
        self.hub.commit(PACKAGE, package_files())
        self.ok("pull", PACKAGE)
        outside = self.tmp / "outside"
        outside.mkdir()
        (outside / "file").write_text("untouched")
        cache = self.root / "superpoint-p150"
        cache.mkdir()
        (cache / "cache").symlink_to(outside)
        self.ok("rm", PACKAGE)
        self.assertFalse(cache.exists())
        self.assertEqual((outside / "file").read_text(), "untouched")


class Images(ManagerTest):
    """The image of a package, checked before Docker sees it."""

    def setUp(self):
        super().setUp()
        # Something that answers as Docker does, and must never be asked to load anything.
        import http.server
        import threading

        test = self
        self.loads = []

        class Engine(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = {"/version": {"Version": "28.0"}, "/info": {"SecurityOptions": []}}.get(self.path)
                data = json.dumps(body if body is not None else {"message": "no such image"}).encode()
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self):
                test.loads.append(self.path)
                self.send_response(500)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.engine = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine)
        threading.Thread(target=self.engine.serve_forever, daemon=True).start()
        self.addCleanup(self.engine.server_close)
        self.addCleanup(self.engine.shutdown)
        self.env["DOCKER_HOST"] = "tcp://127.0.0.1:%d" % self.engine.server_address[1]

    def pull(self, change, expect):
        files = package_files()
        change(files)
        self.hub.commit(PACKAGE, files, replace=True)
        done = self.fails(1, "pull", PACKAGE)
        self.assertIn(expect, done.err)
        self.assertEqual(self.loads, [], "Docker was not asked")

    @staticmethod
    def index(files):
        return json.loads(files["image/index.json"])

    def layer_of(self, files):
        digest = self.index(files)["manifests"][0]["digest"]
        return json.loads(files["image/blobs/sha256/" + digest[7:]])["layers"][0]

    def replace_manifest(self, files, change):
        index = self.index(files)
        old = index["manifests"][0]["digest"][7:]
        doc = json.loads(files.pop("image/blobs/sha256/" + old))
        change(doc)
        data = json.dumps(doc).encode()
        index["manifests"][0].update(digest="sha256:" + sha256(data), size=len(data))
        files["image/blobs/sha256/" + sha256(data)] = data
        files["image/index.json"] = json.dumps(index).encode()

    def test_a_layer_that_lies_about_its_size(self):
        for size in (1, 1 << 60, -1):
            self.pull(lambda f: self.replace_manifest(f, lambda d: d["layers"][0].update(size=size)),
                      "refused: a blob")

    def test_a_layer_of_other_bytes(self):
        def change(files):
            name = "image/blobs/sha256/" + self.layer_of(files)["digest"][7:]
            files[name] = files[name][:-1] + b"?"

        self.pull(change, "do not have its digest")

    def test_a_layer_that_is_missing(self):
        self.pull(lambda f: f.pop("image/blobs/sha256/" + self.layer_of(f)["digest"][7:]) and None, "missing")

    def test_digests_that_are_paths(self):
        for digest in ("sha256:../../../../../canary", "sha256:" + "A" * 64, "md5:" + "0" * 32, "", None, 7):
            self.pull(lambda f: self.replace_manifest(f, lambda d: d["layers"][0].update(digest=digest)),
                      "no proper digest")

    def test_no_layers_and_too_many(self):
        self.pull(lambda f: self.replace_manifest(f, lambda d: d.update(layers=[])), "no layers")
        self.pull(lambda f: self.replace_manifest(f, lambda d: d.update(layers=d["layers"] * 600)), "too many")

    def test_an_index_that_is_none(self):
        self.pull(lambda f: f.update({"image/index.json": b"{}"}), "names no image")
        self.pull(lambda f: f.update({"image/index.json": b"[" * 100000}), "not valid JSON")
        self.pull(lambda f: f.pop("image/index.json") and None, "missing")

    def test_links_out_of_the_tree(self):
        """A package on disk whose blobs are links to elsewhere."""
        secret = self.tmp / "secret"
        files = package_files()
        where = self.tmp / "package"
        for path, data in files.items():
            target = where / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        blob = where / "image/blobs/sha256" / self.layer_of(files)["digest"][7:]
        secret.write_bytes(blob.read_bytes())
        blob.unlink()
        blob.symlink_to(secret)
        done = self.fails(1, "serve", where, "--profile", "cpu")
        self.assertIn("leads outside the package", done.err)
        # A link inside the image, under the right name, to other bytes of the same length.
        other = where / "image/other" / blob.name
        other.parent.mkdir()
        other.write_bytes(secret.read_bytes()[:-1] + b"?")
        blob.unlink()
        blob.symlink_to(other)
        done = self.fails(1, "serve", where, "--profile", "cpu")
        self.assertIn("do not have its digest", done.err)
        self.assertEqual(self.loads, [])


if __name__ == "__main__":
    main()

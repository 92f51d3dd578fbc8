"""Serving without Docker: the project's own server in the background."""
import base64
import json
import os
import pathlib
import signal
import socket
import sys
import time
import unittest
import urllib.request

from support import BIN, PACKAGE, SKIP, WEIGHTS_REPO, ManagerTest, main, package_files, weights_files

TOP = pathlib.Path(__file__).resolve().parents[2]


class Native(ManagerTest):
    def setUp(self):
        super().setUp()
        self.hub.commit(WEIGHTS_REPO, weights_files((TOP / "weights/superpoint.safetensors").read_bytes()))
        self.hub.commit(PACKAGE, package_files())
        self.addCleanup(self.run_model, "stop", PACKAGE)

    def state(self, profile="p150"):
        return json.loads((self.root / ("native/superpoint-p150--%s.json" % profile)).read_text())

    def test_serve_predict_logs_stop(self):
        done = self.ok("serve", PACKAGE, "--native", "--json")
        doc = done.json()
        self.assertEqual((doc["server"], doc["state"], doc["profile"]), ("native", "ready", "p150"))
        with urllib.request.urlopen(doc["endpoint"] + "/health") as reply:
            self.assertEqual(json.load(reply), {"status": "ok"})
        picture = base64.b64encode((TOP / "sample_data/bridge.jpg").read_bytes()).decode()
        with urllib.request.urlopen(urllib.request.Request(
                doc["endpoint"] + "/predict", json.dumps({"image": picture}).encode(),
                {"Content-Type": "application/json"})) as reply:
            self.assertGreater(json.load(reply)["num_keypoints"], 100)
        row = self.ok("ps", "--json").json()["served"][0]
        self.assertEqual((row["name"], row["backend"], row["status"], row["health"], row["served_id"], row["port"]),
                         (PACKAGE, "native", "running", "healthy", WEIGHTS_REPO, doc["port"]))
        self.assertIn("running already", self.fails(1, "serve", PACKAGE, "--native").err)
        log = self.ok("logs", PACKAGE)
        self.assertIn("Application startup complete", log.out + log.err)
        time.sleep(1.1)
        mark = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        urllib.request.urlopen(doc["endpoint"] + "/info").read()
        log = self.ok("logs", PACKAGE, "--since", mark)
        self.assertIn("/info", log.out + log.err)
        self.assertNotIn("startup complete", log.out + log.err)
        self.assertEqual(len((self.ok("logs", PACKAGE, "-n", "2").out + "").splitlines()), 2)
        stopped = self.ok("stop", PACKAGE, "--json").json()
        self.assertEqual(stopped["servers"][0]["outcome"], "clean")
        log = self.ok("logs", PACKAGE)
        self.assertIn("Application shutdown complete", log.out + log.err, "the log outlives the server")
        self.assertIn("nothing running", self.ok("stop", PACKAGE).err)

    def test_falls_back_aloud(self):
        done = self.ok("serve", PACKAGE, "--detach")
        self.assertIn("Docker does not run here", done.err)
        self.assertIn("this project's own server", done.err)
        self.assertIn("started: http://127.0.0.1:", done.err)
        self.ok("stop", PACKAGE)

    def test_follow(self):
        doc = self.ok("serve", PACKAGE, "--native", "--json").json()
        follow = self.start("logs", PACKAGE, "-f", "-n", "0")
        time.sleep(0.5)
        urllib.request.urlopen(doc["endpoint"] + "/info").read()
        time.sleep(0.5)
        self.ok("stop", PACKAGE)
        out, err = follow.communicate(timeout=20)
        self.assertEqual(follow.returncode, 0, "following ends with the server")
        self.assertIn("/info", out)
        self.assertIn("Application shutdown complete", out + err)

    def test_crash_is_shown_and_kept(self):
        done = self.fails(2, "serve", PACKAGE, "--native", "--no-such-option")
        self.assertIn("--no-such-option", done.err)
        log = self.ok("logs", PACKAGE)
        self.assertIn("--no-such-option", log.out + log.err)
        row = self.ok("ps", "-a", "--json").json()["served"][0]
        self.assertEqual((row["status"], row["exit_code"]), ("exited", 2))
        self.ok("serve", PACKAGE, "--native")

    def test_exact_port(self):
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assertIn("port %d is taken" % port, self.fails(1, "serve", PACKAGE, "--native", "--port", port).err)
        doc = self.ok("serve", PACKAGE, "--native", "--json", "--port", port).json()
        self.assertEqual(doc["port"], port)
        self.fails(2, "serve", PACKAGE, "--native", "--port", "99999")

    def test_ports_are_not_shared(self):
        self.hub.commit("owner/second", package_files(name="second"))
        runs = [self.start("serve", name, "--native", "--json") for name in (PACKAGE, "owner/second")]
        self.addCleanup(self.run_model, "stop", "owner/second")
        ports = set()
        for run in runs:
            out, err = run.communicate(timeout=120)
            self.assertEqual(run.returncode, 0, err)
            ports.add(json.loads(out)["port"])
        self.assertEqual(len(ports), 2)

    def test_a_reboot_and_a_reused_number(self):
        self.ok("serve", PACKAGE, "--native")
        path = self.root / "native/superpoint-p150--p150.json"
        real = self.state()
        after_boot = dict(real, boot_id="another-boot")
        path.write_text(json.dumps(after_boot))
        self.assertEqual(self.ok("ps", "--json").json()["served"], [])
        self.assertEqual(self.ok("ps", "-a", "--json").json()["served"][0]["status"], "lost")
        other = dict(real, start_ticks=real["start_ticks"] + 1)
        path.write_text(json.dumps(other))
        self.assertIn("nothing running", self.ok("stop", PACKAGE).err)
        os.kill(real["pid"], 0)  # it was not ours to stop
        path.write_text(json.dumps(after_boot))
        doc = self.ok("serve", PACKAGE, "--native", "--json").json()
        self.assertNotEqual(self.state()["pid"], real["pid"])
        self.assertTrue(doc["port"])
        os.kill(real["pid"], signal.SIGTERM)

    def test_killed_server(self):
        self.ok("serve", PACKAGE, "--native")
        os.kill(self.state()["pid"], signal.SIGKILL)
        deadline = time.monotonic() + 10
        while "exit_code" not in self.state() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.state()["exit_code"], 137)
        self.assertIn("nothing running", self.ok("stop", PACKAGE).err)

    def test_only_superpoint(self):
        self.hub.commit("some/llm", {"config.json": b'{"model_type": "llama"}', "model.safetensors": b"x" * 100})
        self.hub.commit("owner/chat", package_files(name="chat", weights={"repo_id": "some/llm"}))
        done = self.fails(7, "serve", "owner/chat", "--native")
        self.assertIn("not SuperPoint's", done.err)
        self.assertIn("Docker does not run here", self.fails(4, "serve", "owner/chat").err)

    def test_offline_after_a_pull(self):
        self.ok("pull", PACKAGE, "--with-weights")
        self.ok("serve", PACKAGE, "--native", "--local-only", HF_ENDPOINT="http://127.0.0.1:9")
        self.ok("stop", PACKAGE)
        self.hub.clear()
        self.ok("serve", PACKAGE, "--native", "--local-only", "--print")
        self.assertEqual(self.hub.requests, [])

    def test_refresh_and_pins(self):
        old = self.hub.repos[PACKAGE].refs["main"]
        self.ok("pull", PACKAGE)
        new = self.hub.commit(PACKAGE, {"README.md": b"newer"})
        revision = lambda: json.loads((self.root / "installed.json").read_text())[PACKAGE]["revision"]
        self.ok("serve", PACKAGE, "--native")
        self.ok("stop", PACKAGE)
        self.assertEqual(revision(), old)
        done = self.ok("serve", PACKAGE, "--native", "--refresh")
        self.assertIn("moved from %s to %s" % (old[:8], new[:8]), done.err)
        self.ok("stop", PACKAGE)
        self.assertEqual(revision(), new)
        self.ok("serve", PACKAGE + "@" + old, "--native")
        self.ok("stop", PACKAGE)
        self.assertEqual(revision(), old, "a revision that is asked for is served")
        self.ok("serve", PACKAGE, "--native", "--refresh")
        self.ok("stop", PACKAGE)
        self.assertEqual(revision(), old, "a pinned package does not move")


if __name__ == "__main__":
    if not (BIN.parent / "superpoint").exists():
        print("skipped: the server was not built")
        sys.exit(SKIP)
    main()

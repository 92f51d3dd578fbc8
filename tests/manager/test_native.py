"""Serving without Docker: the project's own server in the background."""
import base64
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
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

    def test_curl(self):
        self.assertIn("nothing answers at http://127.0.0.1:9", self.fails(5, "curl", "hi", "--base-url", "http://127.0.0.1:9").err)
        doc = self.ok("serve", PACKAGE, "--native", "--json").json()
        picture = TOP / "sample_data/bridge.jpg"
        answer = self.ok("curl", picture, "--max-keypoints", "5", "--return_descriptors=false").json()
        self.assertEqual(answer["num_keypoints"], 5)
        self.assertNotIn("descriptors", answer)
        line = self.ok("curl", picture, "--max-keypoints", "5", "--return_descriptors=false", "--print").out
        if shutil.which("curl"):
            same = subprocess.run(line, shell=True, capture_output=True, check=True).stdout
            self.assertEqual(json.loads(same)["keypoints"], answer["keypoints"])
        done = self.fails(5, "curl", picture, "--nms-radius", "99")
        self.assertRegex(done.err, r"answers 400(.|\n)*nms_radius")
        done = self.fails(7, "curl", "What is a corner?")
        self.assertIn(WEIGHTS_REPO + " does not chat", done.err)
        self.assertIn(doc["endpoint"] + "/docs", done.err)
        for words in (["one", "two"], ["hi", "--temperature"], ["hi", "--base-url", "localhost:1"]):
            self.fails(2, "curl", *words)

    def test_curl_chats(self):
        class Chat(http.server.BaseHTTPRequestHandler):
            def reply(self, doc):
                data = json.dumps(doc).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                self.reply({"object": "list", "data": [{"id": "some/llm"}]})

            def do_POST(self):
                asked.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.reply({"choices": [{"message": {"role": "assistant", "content": "a place\nof interest"}}]})

            def log_message(self, *args):
                pass

        asked = []
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        base = "http://127.0.0.1:%d/v1" % server.server_address[1]
        done = self.ok("curl", "What is a corner?", "--max-tokens", "7", "--stop", "x", TT_MODEL_BASE_URL=base)
        self.assertEqual(done.out, "a place\nof interest\n")
        self.assertEqual(asked, [("/v1/chat/completions",
                                  {"model": "some/llm", "max_tokens": 7, "stop": "x",
                                   "messages": [{"role": "user", "content": "What is a corner?"}]})])
        self.assertIn("choices", self.ok("curl", "hi", "--model", "m", "--json", "--base-url", base).json())

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
        self.assertEqual(self.ok("ps", "-a", "--json").json()["served"][0]["status"], "rebooted")
        self.assertIn("1 native server ended when the machine was restarted", self.ok("ps").err)
        self.assertIn("its server ended when the machine was restarted", self.ok("list").out)
        self.assertEqual(self.ok("list", "--json").json()[0]["native_servers"][0]["status"], "rebooted")
        self.assertEqual(self.ok("resume", "--json").json()["resumed"], [], "it was served without --restart")
        other = dict(real, start_ticks=real["start_ticks"] + 1)
        path.write_text(json.dumps(other))
        self.assertIn("nothing running", self.ok("stop", PACKAGE).err)
        os.kill(real["pid"], 0)  # it was not ours to stop
        path.write_text(json.dumps(after_boot))
        doc = self.ok("serve", PACKAGE, "--native", "--json").json()
        self.assertNotEqual(self.state()["pid"], real["pid"])
        self.assertTrue(doc["port"])
        os.kill(real["pid"], signal.SIGTERM)

    def test_comes_back_after_a_reboot(self):
        """--restart: what the unit that was written runs when the machine starts brings the server back."""
        before = self.ok("serve", PACKAGE, "--native", "--restart", "--json", XDG_CACHE_HOME=str(self.tmp / "a $b%n/c")).json()
        root = self.tmp / "a $b%n/c/tt-model"
        path = root / "native/superpoint-p150--p150.json"
        unit = self.tmp / ".config/systemd/user/tt-model-resume.service"
        wants = unit.parent / "default.target.wants/tt-model-resume.service"
        self.assertTrue(unit.samefile(wants))
        if shutil.which("systemd-analyze"):
            done = subprocess.run(["systemd-analyze", "verify", "--user", str(unit)], env=self.env, capture_output=True, text=True)
            self.assertNotIn("tt-model-resume", done.stdout + done.stderr)
        # The machine goes down without a word, and another boot begins.
        state = json.loads(path.read_text())
        os.kill(state["keeper_pid"], signal.SIGKILL)
        os.kill(state["pid"], signal.SIGKILL)
        while os.path.exists("/proc/%d/fd/0" % state["pid"]):
            time.sleep(0.05)
        path.write_text(json.dumps(dict(state, boot_id="another-boot")))
        # What systemd would run: quotes and specifiers as it reads them.
        lines = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line)
        self.assertIn("/a $b%%n/c", lines["Environment"])
        word = lambda text: text.replace("%%", "%").replace('\\"', '"')
        name, value = word(lines["Environment"].strip('"')).split("=", 1)
        program, command = re.fullmatch(r'"(.*)" (\w+)', lines["ExecStart"]).groups()
        self.assertEqual((name, value), ("XDG_CACHE_HOME", str(self.tmp / "a $b%n/c")))
        self.assertEqual((pathlib.Path(program), command), (BIN, "resume"))
        again = self.ok(command, "--json", **{name: value}).json()["resumed"]
        self.assertEqual([(r["model"], r["port"]) for r in again], [(PACKAGE, before["port"])])
        deadline = time.monotonic() + 60
        while self.ok("ps", "--json", **{name: value}).json()["served"][0]["health"] != "healthy":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
        self.assertNotEqual(json.loads(path.read_text())["pid"], state["pid"])
        self.assertEqual(self.ok("resume", "--json", **{name: value}).json()["resumed"], [], "it runs already")
        self.ok("stop", PACKAGE, **{name: value})
        self.assertFalse(unit.exists() or wants.is_symlink(), "there is nothing left to bring back")

    def test_comes_back_on_another_port(self):
        doc = self.ok("serve", PACKAGE, "--native", "--json").json()
        path = self.root / "native/superpoint-p150--p150.json"
        real = self.state()
        self.addCleanup(os.kill, real["pid"], signal.SIGTERM)
        path.write_text(json.dumps(dict(real, boot_id="another-boot")))  # the port stays taken: it still runs
        row = self.ok("resume", "--all", "--json").json()["resumed"][0]
        self.assertNotEqual(row["port"], doc["port"])
        self.assertEqual(self.ok("ps", "--json").json()["served"][0]["port"], row["port"])

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

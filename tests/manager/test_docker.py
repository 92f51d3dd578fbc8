"""With a real Docker Engine: the whole way of a package, and serving in all its ways."""
import json
import os
import shutil
import signal
import time

import docker_case
from docker_case import AUTHOR, CONTAINER, REVISION, DockerTest
from support import PACKAGE, WEIGHTS_REPO


class Docker(DockerTest):
    def test_the_whole_way(self):
        """package, push, pull, load, serve, predict, logs, stop, rm."""
        out = self.package()
        built = self.built
        if self.engine.image(built["image"]):
            self.engine.remove_image(built["image"])
        self.ok("push", out, **AUTHOR)
        self.assertTrue(self.hub.repos[PACKAGE].private, "a new repository is private")
        self.ok("push", out, "--public", **AUTHOR)
        self.ok("pull", PACKAGE, "--with-weights")
        image = self.engine.image(built["image"])
        self.assertEqual(image["Id"], built["image_digest"])
        labels = image["Config"]["Labels"]
        self.assertEqual(labels["org.tenstorrent.tt-model.repo"], PACKAGE)
        self.assertEqual(labels["org.tenstorrent.tt-model.profiles"], "p150,cpu")
        self.assertIn("already loaded", self.ok("pull", PACKAGE).err)
        self.assertEqual(self.ok("list", "--json").json()[0]["image_state"], "loaded")

        served = self.ok("serve", PACKAGE, "--json")
        self.assertIn("no Tenstorrent card here", served.err, "the change of profile is said aloud")
        doc = served.json()
        self.assertEqual((doc["server"], doc["state"], doc["profile"]), (CONTAINER, "ready", "cpu"))
        endpoint = doc["endpoint"]
        self.assertEqual(self.get(endpoint + "/health"), {"status": "ok"})
        self.assertEqual(self.get(endpoint + "/v1/models")["data"][0]["id"], WEIGHTS_REPO)
        answer = self.predict(endpoint)
        self.assertGreater(answer["num_keypoints"], 100)
        self.assertEqual(answer["serving_path"]["engine"], "cpu")
        inspected = self.engine.inspect(CONTAINER)
        self.assertEqual(inspected["Config"]["Labels"]["org.tenstorrent.tt-model.profile"], "cpu")
        self.assertEqual(inspected["HostConfig"]["IpcMode"], "host")
        self.assertIn(inspected["HostConfig"]["RestartPolicy"]["Name"], ("", "no"))
        self.assertIn("HF_MODEL=/hf/hub/models--magic-leap-community--superpoint/snapshots/" + REVISION,
                      inspected["Config"]["Env"])
        row = self.ok("ps", "--json").json()["served"][0]
        self.assertEqual((row["name"], row["container"], row["status"], row["health"], row["served_id"]),
                         (PACKAGE, CONTAINER, "running", "healthy", WEIGHTS_REPO))
        log = self.ok("logs", PACKAGE)
        self.assertIn("Application startup complete", log.out + log.err)
        self.assertEqual(len(self.ok("logs", PACKAGE, "--tail", "1").out.splitlines()), 1)
        self.assertEqual(self.ok("logs", PACKAGE, "--since", "2099-01-01T00:00:00Z").out, "")
        follow = self.start("logs", PACKAGE, "-f", "--tail", "0")
        time.sleep(0.5)
        self.get(endpoint + "/info")
        line = follow.stdout.readline()
        follow.send_signal(signal.SIGINT)
        lines, _ = follow.communicate(timeout=60)
        self.assertEqual(follow.returncode, 130)
        self.assertIn("/info", line + lines)

        again = self.fails(1, "serve", PACKAGE)
        self.assertIn("running already", again.err)
        stopped = self.ok("stop", PACKAGE)
        self.assertIn("clean shutdown", stopped.err)
        self.assertIn("nothing running", self.ok("stop", PACKAGE).err)
        self.assertEqual(self.engine.containers(), [])
        self.ok("rm", PACKAGE)
        self.assertIsNone(self.engine.image(built["image"]))
        self.assertFalse(self.repo_dir(PACKAGE).exists())

    def test_first_serve_pulls_and_ports_differ(self):
        self.uninstall_image()
        one = self.ok("serve", PACKAGE, "--json").json()
        # The same image under another name, at the same time: the ports must differ.
        doc = json.loads(self.pulled_manifest().read_text())
        runs = []
        for name in ("second", "third"):
            doc["name"] = name
            path = self.tmp / name / "tt_kernel_manifest.json"
            path.parent.mkdir()
            path.write_text(json.dumps(doc))
            runs.append(self.start("serve", path, "--json", "--profile", "cpu"))
        ports = {one["port"]}
        for run in runs:
            out, err = run.communicate(timeout=300)
            self.assertEqual(run.returncode, 0, err)
            ports.add(json.loads(out)["port"])
        self.assertEqual(len(ports), 3)
        self.assertEqual(len(self.ok("ps", "--json").json()["served"]), 3)
        self.fails(1, "serve", self.tmp / "second", "--profile", "cpu", "--port", one["port"])

    def test_crashed_boot_keeps_its_log(self):
        self.install()
        done = self.fails(2, "serve", PACKAGE, "--no-such-flag")
        self.assertIn("no-such-flag", done.err, "the tail of the log is shown")
        log = self.ok("logs", PACKAGE)
        self.assertIn("no-such-flag", log.err + log.out)
        row = self.ok("ps", "-a", "--json").json()["served"][0]
        self.assertEqual((row["status"], row["health"]), ("exited", "stopped"))
        self.assertEqual(self.ok("ps", "--json").json()["served"], [])
        self.ok("serve", PACKAGE)
        self.ok("stop", PACKAGE)

    def test_boot_timeout_interrupt_and_kill(self):
        self.install()
        doc = json.loads(self.pulled_manifest().read_text())
        doc["container"]["kind"] = "http-server"
        doc["container"]["runtime"] = {"command": ["serve", "--host", "{host}", "--port", "{port}"],
                                       "ready_line": "a line that never comes"}
        self.pulled_manifest().write_text(json.dumps(doc))
        done = self.fails(5, "serve", PACKAGE, TT_MODEL_READY_TIMEOUT="2")
        self.assertIn("did not become ready in time", done.err)
        self.fails(9, "serve", PACKAGE, TT_MODEL_READY_TIMEOUT="soon")
        self.assertEqual(self.ok("ps", "--json").json()["served"][0]["status"], "running")
        self.ok("stop", PACKAGE)
        run = self.start("serve", PACKAGE)
        deadline = time.monotonic() + 120
        while "Application startup" not in self.engine.logs(CONTAINER) and time.monotonic() < deadline:
            time.sleep(0.1)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 130, err)
        self.assertEqual(self.ok("ps", "--json").json()["served"][0]["status"], "running", "the server lives on")
        # A server that does not listen to SIGTERM: stopped by force.
        self.engine.kill(CONTAINER, "STOP")
        pid = self.engine.inspect(CONTAINER)["State"]["Pid"]
        stop = self.start("stop", PACKAGE, "--json")
        time.sleep(2)
        os.kill(pid, signal.SIGKILL)
        out, err = stop.communicate(timeout=150)
        self.assertEqual(stop.returncode, 0, err)
        self.assertEqual(json.loads(out)["servers"][0]["outcome"], "killed")

    def test_container_of_the_python_tool(self):
        """Started with its labels, which do not name the repository: the image's own label does."""
        built = self.install()
        label = "org.tenstorrent.tt-model"
        done = self.engine.docker("run", "-d", "--name", CONTAINER, "--label", label + "=superpoint-p150", "--label",
                                  label + ".profile=cpu", "--ipc", "host", "-p", "20077:20077", built["image"], "python", "-m",
                                  "uvicorn", "--host", "0.0.0.0", "--port", "20077", "--lifespan", "on", "superpoint:serve")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = self.ok("ps", "--json").json()["served"][0]
        self.assertEqual((row["name"], row["profile"], row["port"], row["status"]), (PACKAGE, "cpu", 20077, "running"))
        self.assertIn("running already, on port 20077", self.fails(1, "serve", PACKAGE, "--profile", "cpu").err)
        deadline = time.monotonic() + 60
        while "startup complete" not in (lambda done: done.out + done.err)(self.ok("logs", PACKAGE)):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
        self.assertEqual(self.ok("stop", PACKAGE, "--json").json()["servers"][0]["outcome"], "clean")
        self.assertEqual(self.engine.containers(), [])

    def test_comes_back_with_docker(self):
        """--restart: after a restart of the machine, which ends and starts Docker, the server is there again."""
        self.install()
        self.assertIn("--restart unless-stopped", self.ok("serve", PACKAGE, "--restart", "--print").out)
        doc = self.ok("serve", PACKAGE, "--restart", "--json").json()
        self.engine.stop()
        self.assertEqual(self.ok("ps", "--json").json()["served"], [])
        self.engine.start()
        deadline = time.monotonic() + 60
        while [r["health"] for r in self.ok("ps", "--json").json()["served"]] != ["healthy"]:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
        self.assertEqual(self.get(doc["endpoint"] + "/health"), {"status": "ok"})
        self.ok("stop", PACKAGE)
        self.assertEqual(self.engine.containers(), [])

    def test_loads_without_skopeo(self):
        self.uninstall_image()
        tools = self.tmp / "bin"
        tools.mkdir()
        for name in ("git", "docker"):
            (tools / name).symlink_to(shutil.which(name))
        self.ok("pull", PACKAGE, PATH=str(tools))
        self.assertEqual(self.engine.image(self.built["image"])["Id"], self.built["image_digest"])

    def test_print(self):
        self.publish()
        line = self.ok("serve", PACKAGE, "--print", "--port", "21000", "--", "--threads", "2").out
        self.assertTrue(line.startswith("docker run --detach --name tt-model-superpoint-p150-p150 --user 0:0 --label"), line)
        for part in ("--device /dev/tenstorrent:/dev/tenstorrent", "--ipc host", "src=/dev/hugepages-1G",
                     "--publish 21000:21000", "--env HF_HOME=/hf", "--env TT_MESH_SHAPE=1x1", "--env MESH_DEVICE=P150",
                     "python -m uvicorn --host 0.0.0.0 --port 21000 --lifespan on superpoint:serve --threads 2"):
            self.assertIn(part, line)
        self.assertFalse((self.root / "installed.json").exists(), "nothing was pulled")


if __name__ == "__main__":
    docker_case.run()

"""The whole way with a real Docker Engine: package, push, pull, load, serve, predict, logs, stop, rm."""
import atexit
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import dockerd
from support import BIN, PACKAGE, SKIP, WEIGHTS_REPO, ManagerTest, main, weights_files

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = BIN.parents[1]
REVISION = "734450e9ffe229074f5998494ddc615475cdb20a"
CONTAINER = "tt-model-superpoint-p150-cpu"
engine = None
package = []


def build_package(out):
    """packaging/tt-model.yaml as it stands, with a file system made now and figures of a report."""
    work = out / "src"
    work.mkdir(parents=True)
    for name in ("include", "lib", "programs", "packaging", "sample_data"):
        shutil.copytree(TOP / name, work / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TOP / "CMakeLists.txt", work)
    subprocess.run([str(TOP / "packaging/rootfs.sh"), str(BUILD), str(work / "build/rootfs")], check=True,
                   stdout=subprocess.DEVNULL)
    reports = work / "build/reports"
    reports.mkdir()
    step = {"min_ms": 1.5, "median_ms": 2.5, "engine": "cpu", "level": "c", "precision": "fp32", "threads": 2}
    (reports / "bench.json").write_text(json.dumps({
        "machine": {"cpu": "a processor", "threads": 2}, "decode": step, "resize": step, "forward": step,
        "postprocess": step, "encode": step}))
    (reports / "validate.json").write_text(json.dumps({
        "score_pcc": 0.99995, "descriptor_pcc": 0.99999, "top500_2px": {"f1": 0.994},
        "gates": {"score_pcc": 0.9971, "descriptor_pcc": 0.9991, "f1": 0.988}}))
    return work / "packaging/tt-model.yaml"


class Docker(ManagerTest):
    def setUp(self):
        super().setUp()
        self.env["DOCKER_HOST"] = engine.host
        self.model = (TOP / "weights/superpoint.safetensors").read_bytes()
        self.hub.commit(WEIGHTS_REPO, weights_files(self.model), sha=REVISION)
        self.hub.tokens["hf_author"] = {"name": "changh95"}
        self.addCleanup(self.remove_containers)

    def remove_containers(self):
        names = engine.docker("ps", "-aq").stdout.split()
        if names:
            engine.docker("rm", "-f", *names)
        engine.docker("image", "prune", "-af")

    def publish(self):
        """Build the package, once for all tests, and push it."""
        if not package:
            place = pathlib.Path(tempfile.mkdtemp(prefix="tt-model-package-"))
            atexit.register(shutil.rmtree, place, True)
            out = place / "dist"
            built = self.ok("package", "--container", build_package(place), "--out", out, "--json",
                            SOURCE_DATE_EPOCH="1700000000").json()
            package.append((built, out))
        built, out = package[0]
        self.ok("push", out, HF_TOKEN="hf_author")
        self.assertTrue(self.hub.repos[PACKAGE].private, "a new repository is private")
        self.ok("push", out, "--public", HF_TOKEN="hf_author")
        return built, out

    def get(self, url):
        with urllib.request.urlopen(url, timeout=10) as reply:
            return json.load(reply)

    def predict(self, endpoint):
        picture = base64.b64encode((TOP / "sample_data/bridge.jpg").read_bytes()).decode()
        request = urllib.request.Request(endpoint + "/predict", json.dumps({"image": picture}).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def test_the_whole_way(self):
        built, out = self.publish()
        self.ok("pull", PACKAGE, "--with-weights")
        image = json.loads(engine.docker("image", "inspect", built["image"]).stdout)[0]
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
        inspected = json.loads(engine.docker("inspect", CONTAINER).stdout)[0]
        self.assertEqual(inspected["Config"]["Labels"]["org.tenstorrent.tt-model.profile"], "cpu")
        self.assertEqual(inspected["HostConfig"]["IpcMode"], "host")
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
        time.sleep(1)
        follow.send_signal(signal.SIGINT)
        lines, _ = follow.communicate(timeout=20)
        self.assertEqual(follow.returncode, 130)
        self.assertIn("/info", lines)

        again = self.fails(1, "serve", PACKAGE)
        self.assertIn("running already", again.err)
        stopped = self.ok("stop", PACKAGE)
        self.assertIn("clean shutdown", stopped.err)
        self.assertIn("nothing running", self.ok("stop", PACKAGE).err)
        self.assertEqual(engine.docker("ps", "-aq").stdout, "")
        self.ok("rm", PACKAGE)
        self.assertNotEqual(engine.docker("image", "inspect", built["image"]).returncode, 0)
        self.assertFalse(self.repo_dir(PACKAGE).exists())

    def test_first_serve_pulls_and_ports_differ(self):
        self.publish()
        first = self.start("serve", PACKAGE, "--json")
        out, err = first.communicate(timeout=300)
        self.assertEqual(first.returncode, 0, err)
        one = json.loads(out)
        # The same image under another name, at the same time: the ports must differ.
        doc = json.loads((self.root / "pulled/changh95__superpoint-p150/tt_kernel_manifest.json").read_text())
        runs = []
        for name in ("second", "third"):
            doc["name"] = name
            path = self.tmp / name / "tt_kernel_manifest.json"
            path.parent.mkdir()
            path.write_text(json.dumps(doc))
            runs.append(self.start("serve", path, "--json", "--profile", "cpu"))
        ports = {one["port"]}
        for run in runs:
            out, err = run.communicate(timeout=120)
            self.assertEqual(run.returncode, 0, err)
            ports.add(json.loads(out)["port"])
        self.assertEqual(len(ports), 3)
        self.assertEqual(len(self.ok("ps", "--json").json()["served"]), 3)
        self.fails(1, "serve", self.tmp / "second", "--profile", "cpu", "--port", one["port"])

    def test_crashed_boot_keeps_its_log(self):
        self.publish()
        done = self.fails(2, "serve", PACKAGE, "--no-such-flag")
        self.assertIn("no-such-flag", done.err, "the tail of the log is shown")
        self.assertIn("no-such-flag", self.ok("logs", PACKAGE).err + self.ok("logs", PACKAGE).out)
        row = self.ok("ps", "-a", "--json").json()["served"][0]
        self.assertEqual((row["status"], row["health"]), ("exited", "stopped"))
        self.assertEqual(self.ok("ps", "--json").json()["served"], [])
        self.ok("serve", PACKAGE)
        self.ok("stop", PACKAGE)

    def test_boot_timeout_interrupt_and_kill(self):
        self.publish()
        self.ok("pull", PACKAGE, "--with-weights")
        pulled = self.root / "pulled/changh95__superpoint-p150/tt_kernel_manifest.json"
        doc = json.loads(pulled.read_text())
        doc["container"]["kind"] = "http-server"
        doc["container"]["runtime"] = {"command": ["serve", "--host", "{host}", "--port", "{port}"],
                                       "ready_line": "a line that never comes"}
        pulled.write_text(json.dumps(doc))
        done = self.fails(5, "serve", PACKAGE, TT_MODEL_READY_TIMEOUT="3")
        self.assertIn("did not become ready in time", done.err)
        self.fails(9, "serve", PACKAGE, TT_MODEL_READY_TIMEOUT="soon")
        self.assertEqual(self.ok("ps", "--json").json()["served"][0]["status"], "running")
        self.ok("stop", PACKAGE)
        run = self.start("serve", PACKAGE)
        deadline = time.monotonic() + 60
        while "Application startup" not in engine.docker("logs", CONTAINER).stdout and time.monotonic() < deadline:
            time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=20)
        self.assertEqual(run.returncode, 130, err)
        self.assertEqual(self.ok("ps", "--json").json()["served"][0]["status"], "running", "the server lives on")
        # A server that does not listen to SIGTERM: stopped by force.
        engine.docker("kill", "--signal", "STOP", CONTAINER)
        pid = json.loads(engine.docker("inspect", CONTAINER).stdout)[0]["State"]["Pid"]
        stop = self.start("stop", PACKAGE, "--json")
        time.sleep(2)
        os.kill(pid, signal.SIGKILL)
        out, err = stop.communicate(timeout=150)
        self.assertEqual(stop.returncode, 0, err)
        self.assertEqual(json.loads(out)["servers"][0]["outcome"], "killed")

    def test_loads_without_skopeo(self):
        built, _ = self.publish()
        tools = self.tmp / "bin"
        tools.mkdir()
        for name in ("git", "docker"):
            (tools / name).symlink_to(shutil.which(name))
        self.ok("pull", PACKAGE, PATH=str(tools))
        image = json.loads(engine.docker("image", "inspect", built["image"]).stdout)[0]
        self.assertEqual(image["Id"], built["image_digest"])

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
    try:
        engine = dockerd.Engine()
    except dockerd.Unavailable as why:
        print("skipped: %s" % why)
        sys.exit(SKIP)
    if not (BIN.parent / "superpoint").exists():
        print("skipped: the server was not built")
        sys.exit(SKIP)
    try:
        main()
    finally:
        engine.close()

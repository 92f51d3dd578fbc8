"""The real `tt` (PyPI: tenstorrent) driving tt-model, with a real Docker Engine. Run by `make manager-parity`.

TT_BIN names the tt program.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import docker_case
from docker_case import CONTAINER, REVISION, DockerTest
from support import BIN, PACKAGE, SKIP, WEIGHTS_REPO

TT = os.environ.get("TT_BIN", "tt")


class Tt(DockerTest):
    def setUp(self):
        super().setUp()
        self.env.update(TT_TOOL_BIN_TT_MODEL=str(BIN), TT_NO_PAGER="1", COLUMNS="160")

    def tt(self, *args, code=0, timeout=300):
        done = subprocess.run([TT, *map(str, args)], env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout)
        self.assertEqual(done.returncode, code, "tt %s\n%s\n%s" % (args, done.stdout, done.stderr))
        return done

    def test_serve_ps_logs_stop(self):
        self.publish()
        done = self.tt("--json", "serve", PACKAGE, "--yes") if self.takes_yes() else self.tt("--json", "serve", PACKAGE)
        doc = json.loads(done.stdout)
        self.assertEqual((doc["model"], doc["backend"], doc["container"]), (PACKAGE, "tt-model", CONTAINER))
        endpoint = doc["endpoint"][: -len("/v1")]
        self.assertGreater(self.predict(endpoint)["num_keypoints"], 100)
        # Its phases came from our events, not from guesses at prose.
        raw = pathlib.Path(doc["log"]).read_text()
        events = [json.loads(line) for line in raw.splitlines() if line.startswith('{"event"') or line.startswith('{"event":')]
        keys = [(e["key"], e["state"]) for e in events if e.get("event") == "step"]
        for key in ("host", "image", "weights", "container"):
            self.assertIn((key, "start"), keys)
            self.assertIn((key, "done"), keys)
        self.assertTrue([e for e in events if e.get("event") == "progress"])
        self.assertEqual([e["id"] for e in events if e.get("event") == "container"], [CONTAINER])
        shown = " ".join(str(t) for t in json.dumps(doc["timings"]).split())
        self.assertTrue(shown)

        served = json.loads(self.tt("--json", "model", "ps").stdout)["served"]
        row = [r for r in served if r["backend"] == "model-manager"][0]
        self.assertEqual((row["name"], row["profile"], row["health"], row["served_id"]),
                         (PACKAGE, "cpu", "healthy", WEIGHTS_REPO))
        ours = self.ok("ps", "--json").json()["served"][0]
        for key in ("name", "backend", "container", "container_id", "image", "port", "base_url", "status", "health",
                    "started_at", "profile", "served_id"):
            self.assertEqual(ours[key], row[key], key)
        log = self.tt("model", "logs", PACKAGE)
        self.assertIn("Application startup complete", log.stdout + log.stderr)
        listed = self.tt("model", "list", "--community").stdout
        self.assertIn(PACKAGE, listed)
        info = self.tt("model", "info", PACKAGE)
        self.assertIn("superpoint-p150", info.stdout)
        self.tt("model", "stop", PACKAGE)
        self.assertEqual(self.engine.containers(), [])

    def takes_yes(self):
        text = subprocess.run([TT, "serve", "--help"], env=self.env, capture_output=True, text=True).stdout
        return "--yes" in text

    def test_pull_search_rm(self):
        self.publish()
        self.tt("model", "pull", PACKAGE)
        record = json.loads((self.root / "installed.json").read_text())[PACKAGE]
        self.assertTrue(record["image_loaded_id"])
        self.assertTrue((self.repo_dir(WEIGHTS_REPO) / "refs/main").exists(), "with its weights")
        self.tt("model", "rm", PACKAGE, "-y")
        self.assertEqual(json.loads((self.root / "installed.json").read_text()), {})

    def test_a_failed_boot_is_explained(self):
        self.publish()
        self.hub.repos[WEIGHTS_REPO].commits[REVISION]["model.safetensors"] = b"not weights"
        done = subprocess.run([TT, "serve", PACKAGE, *(["--yes"] if self.takes_yes() else [])], env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("safetensors", done.stdout + done.stderr)


if __name__ == "__main__":
    if not shutil.which(TT):
        print("skipped: tt is not installed; `make manager-parity` installs it")
        sys.exit(SKIP)
    docker_case.run()

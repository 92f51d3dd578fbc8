"""What the tests with a real Docker Engine share: the engine, and this project's package, built, pushed and
pulled once. Each test gets a Hub and a home of its own, in the state that they were left in by that.
"""
import base64
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import dockerd
from support import BIN, PACKAGE, SKIP, WEIGHTS_REPO, ManagerTest, main, weights_files

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = BIN.parents[1]
REVISION = "734450e9ffe229074f5998494ddc615475cdb20a"
CONTAINER = "tt-model-superpoint-p150-cpu"
AUTHOR = {"HF_TOKEN": "hf_author"}


def make_sources(out, rootfs=None):
    """packaging/tt-model.yaml as it stands, with a file system made now (or `rootfs`) and figures of a report."""
    out.mkdir(parents=True)
    for name in ("include", "lib", "programs", "packaging", "sample_data"):
        shutil.copytree(TOP / name, out / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TOP / "CMakeLists.txt", out)
    reports = out / "build/reports"
    reports.mkdir(parents=True)
    if rootfs:
        (out / "build/rootfs").symlink_to(rootfs)
    else:
        subprocess.run([str(TOP / "packaging/rootfs.sh"), str(BUILD), str(out / "build/rootfs")], check=True,
                       stdout=subprocess.DEVNULL)
    step = {"min_ms": 1.5, "median_ms": 2.5, "engine": "cpu", "level": "c", "precision": "fp32", "threads": 2}
    (reports / "bench.json").write_text(json.dumps({
        "machine": {"cpu": "a processor", "threads": 2}, "decode": step, "resize": step, "forward": step,
        "postprocess": step, "encode": step}))
    (reports / "validate.json").write_text(json.dumps({
        "score_pcc": 0.99995, "descriptor_pcc": 0.99999, "top500_2px": {"f1": 0.994},
        "gates": {"score_pcc": 0.9971, "descriptor_pcc": 0.9991, "f1": 0.988}}))
    return out / "packaging/tt-model.yaml"


class DockerTest(ManagerTest):
    engine = None
    place = None  # what lasts over all tests: the package, and the home that it was pulled into
    rootfs = None  # the image's files; None: packaging/rootfs.sh makes them
    built = None  # what `tt-model package --json` said
    repos = lfs = None  # of the Hub after the push

    def setUp(self):
        super().setUp()
        self.env["DOCKER_HOST"] = self.engine.host
        self.hub.tokens["hf_author"] = {"name": "changh95"}
        model = (TOP / "weights/superpoint.safetensors").read_bytes()
        self.hub.commit(WEIGHTS_REPO, weights_files(model), sha=REVISION)
        self.addCleanup(self.engine.remove_containers)

    def package(self):
        """Build the package; it can be pushed from the directory that comes back."""
        out = self.place / "dist"
        if not out.exists():
            DockerTest.built = self.ok("package", "--container", make_sources(self.place / "src", self.rootfs), "--out", out, "--json",
                                       SOURCE_DATE_EPOCH="1700000000").json()
        return out

    def publish(self):
        """The package on the Hub of this test; of its code only what a test of Docker needs, which is nothing."""
        if not DockerTest.repos:
            out = self.package()
            shutil.copytree(out, self.place / "small", ignore=shutil.ignore_patterns("code"))
            self.ok("push", self.place / "small", "--public", **AUTHOR)
            DockerTest.repos, DockerTest.lfs = dict(self.hub.repos), dict(self.hub.lfs)
        self.hub.repos[PACKAGE] = DockerTest.repos[PACKAGE]
        self.hub.lfs.update(DockerTest.lfs)
        return self.built

    def install(self):
        """Published, pulled with its weights, and its image in Docker."""
        built, home = self.publish(), self.place / "home"
        if not home.exists():
            self.ok("pull", PACKAGE, "--with-weights", HOME=str(home))
        shutil.copytree(home, self.tmp, symlinks=True, dirs_exist_ok=True)
        index = self.root / "installed.json"
        index.write_text(index.read_text().replace(str(home), str(self.tmp)))
        if not self.engine.image(built["image"]):
            self.ok("pull", PACKAGE)
        return built

    def uninstall_image(self):
        self.engine.remove_image(self.publish()["image"])

    def pulled_manifest(self):
        return self.root / "pulled/changh95__superpoint-p150/tt_kernel_manifest.json"

    def get(self, url):
        with urllib.request.urlopen(url, timeout=30) as reply:
            return json.load(reply)

    def predict(self, endpoint):
        picture = base64.b64encode((TOP / "sample_data/bridge.jpg").read_bytes()).decode()
        request = urllib.request.Request(endpoint + "/predict", json.dumps({"image": picture}).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)


def run():
    """The tests of the calling script, with an engine; skipped aloud where there can be none."""
    if not (BIN.parent / "superpoint").exists():
        print("skipped: the server was not built")
        sys.exit(SKIP)
    try:
        DockerTest.engine = dockerd.Engine()
    except dockerd.Unavailable as why:
        print("skipped: %s" % why)
        sys.exit(SKIP)
    with contextlib.ExitStack() as stack:
        stack.callback(DockerTest.engine.close)
        DockerTest.place = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tt-model-package-")))
        main()

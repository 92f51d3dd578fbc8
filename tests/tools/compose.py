"""packaging/compose with Docker: three containers of the image behind one of nginx, as `docker compose up` starts them.

With a Docker Engine of its own, Debian's docker-compose, and no registry: the image is made from packaging/rootfs.sh, and
nginx:stable, of that name only, from Debian's nginx. Checks that a picture is answered, that all three servers answer, that
a container that is killed is not noticed, and that all end by themselves.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "manager"))
import dockerd  # noqa: E402

FILE = ROOT / "packaging" / "compose" / "compose.yaml"
PICTURE = (ROOT / "sample_data" / "bridge.jpg").read_bytes()
BUILD = Path(os.environ.get("BUILD", "build")).resolve()


def add_with_libraries(root, program):
    """A program and the libraries that it loads, at their places."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for path in [program, *re.findall(r"(/\S+) \(0x", listing)]:
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), target)


def nginx_root(root):
    add_with_libraries(root, shutil.which("nginx") or "/usr/sbin/nginx")
    for folder in ("etc/nginx/conf.d", "var/log/nginx", "var/lib/nginx", "run", "tmp"):
        (root / folder).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/:/\nnobody:x:65534:65534::/:/\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/nginx/nginx.conf").write_text(
        "user root; daemon off; error_log stderr;\nevents {}\nhttp { access_log off; include /etc/nginx/conf.d/*.conf; }\n")


def make_image(engine, root, tag, *changes):
    archive = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
    done = engine.docker("import", *[word for c in changes for word in ("--change", c)], "-", tag, stdin=archive.stdout)
    assert archive.wait() == 0 and done.returncode == 0, done.stderr


def compose(engine, *args):
    done = subprocess.run(["docker-compose", "--project-name", "superpoint", "--file", FILE, *args],
                          env={**os.environ, "DOCKER_HOST": engine.host}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def predict():
    request = urllib.request.Request("http://127.0.0.1:8080/predict?max_keypoints=20&return_descriptors=false", PICTURE,
                                     {"Content-Type": "image/jpeg"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def wait_until_ready():
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen("http://127.0.0.1:8080/readyz", timeout=5):
                return
        except OSError:
            assert time.monotonic() < end, "no answer on port 8080"
            time.sleep(0.1)


def answered(engine, name):
    """Requests for keypoints that a container answered, by its own count."""
    address = engine.inspect(name)["NetworkSettings"]["Networks"]["superpoint_default"]["IPAddress"]
    with urllib.request.urlopen(f"http://{address}:20000/metrics", timeout=10) as reply:
        text = reply.read().decode()
    return sum(float(n) for n in re.findall(r'^\w*requests_total\{[^}]*predict[^}]*\} (\S+)$', text, re.M))


def ask_under_way(count, failures):
    for _ in range(count):
        try:
            predict()
        except OSError as why:
            failures.append(str(why))


def check(engine):
    names = [f"superpoint_superpoint-{i}_1" for i in (1, 2, 3)]
    wait_until_ready()
    first = predict()
    assert first["num_keypoints"] == 20, first
    failures = []
    for kill in (None, names[1]):
        clients = [threading.Thread(target=ask_under_way, args=(12, failures)) for _ in range(4)]
        for c in clients:
            c.start()
        if kill:
            engine.kill(kill, "SIGKILL")
        for c in clients:
            c.join()
        if not kill:
            counts = [answered(engine, name) for name in names]
            print(f"49 requests: the three servers answered {counts}")
            assert min(counts) > 0
    assert not failures, failures
    print("one server killed under load: no request failed")
    again = predict()
    assert again["keypoints"] == first["keypoints"]


def main():
    try:
        engine = dockerd.Engine()
    except dockerd.Unavailable as why:
        print(why)
        return 77
    if not shutil.which("docker-compose"):
        print("docker-compose is not installed")
        return 77
    try:
        with tempfile.TemporaryDirectory() as folder:
            superpoint, nginx = Path(folder) / "superpoint", Path(folder) / "nginx"
            subprocess.run([ROOT / "packaging" / "rootfs.sh", BUILD, superpoint], check=True, stdout=subprocess.DEVNULL)
            nginx.mkdir()
            nginx_root(nginx)
            make_image(engine, superpoint, "superpoint-p150", "USER 1000:1000", "WORKDIR /home/tt/work")
            make_image(engine, nginx, "nginx:stable", 'CMD ["/usr/sbin/nginx"]')
        compose(engine, "up", "--detach")
        check(engine)
        began = time.monotonic()
        compose(engine, "down")
        print(f"docker-compose down took {time.monotonic() - began:.1f} s")
    finally:
        engine.remove_containers()
        engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A Hub for tests: the parts of the Hugging Face Hub's HTTP protocol that tt-model and huggingface_hub
speak, with faults on demand. Large files are kept by a storage server on another port, to which the Hub
redirects, as the real one does.

    with Hub() as hub:
        sha = hub.commit("owner/name", {"README.md": b"...", "model.safetensors": b"..."})
        hub.fault("storage", cut=0.1)
        ... HF_ENDPOINT=hub.url ...
        hub.requests, hub.served

Only the standard library is used.
"""
import argparse
import base64
import contextlib
import hashlib
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse

LFS_THRESHOLD = 4096


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Fault:
    """What goes wrong with requests whose path matches, `times` times (None: always)."""

    def __init__(self, match, times=None, **what):
        self.match, self.times, self.what = re.compile(match), times, what

    def take(self, path):
        if not self.match.search(path) or self.times == 0:
            return {}
        if self.times is not None:
            self.times -= 1
        return self.what


class Repo:
    def __init__(self, private=False, gated=False, kind="model"):
        self.private, self.gated, self.kind = private, gated, kind
        self.refs = {}  # branch -> sha
        self.commits = {}  # sha -> {path: bytes}
        self.raw_names = {}  # sha -> names to announce instead (hostile packages)
        self.messages = {}
        self.card = {}
        self.tags = []
        self.downloads = 0


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that hang up are part of the tests


class Hub:
    def __init__(self, port=0):
        self.lock = threading.RLock()
        self.repos, self.lfs, self.tokens, self.faults = {}, {}, {}, []
        self.requests = []  # (server, method, path, headers)
        self.moments = []  # when each of them came, in seconds
        self.served = {}  # digest or path -> bytes that went out
        self.hub = self._server(port, HubHandler)
        self.storage = self._server(0, StorageHandler)
        self.url = "http://127.0.0.1:%d" % self.hub.server_address[1]
        # Another name for the same machine: a different host to whoever minds where tokens go.
        self.storage_url = "http://localhost:%d" % self.storage.server_address[1]

    def _server(self, port, handler):
        server = QuietServer(("127.0.0.1", port), handler)
        server.world = self
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def close(self):
        for server in (self.hub, self.storage):
            server.shutdown()
            server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # ---- content -----------------------------------------------------------------------------------
    def create(self, repo_id, **how):
        return self.repos.setdefault(repo_id, Repo(**how))

    def commit(self, repo_id, files, branch="main", message="test", replace=False, names=None, sha=None, **how):
        """Add files to a branch; returns the new commit. `names` announces other names than are kept."""
        with self.lock:
            repo = self.create(repo_id, **how)
            parent = repo.refs.get(branch, "")
            tree = {} if replace or not parent else dict(repo.commits[parent])
            for path, data in files.items():
                if data is None:
                    tree.pop(path, None)
                else:
                    tree[path] = data
            text = parent + branch + "".join(p + git_sha1(d) for p, d in sorted(tree.items()))
            sha = sha or hashlib.sha1(text.encode()).hexdigest()
            repo.commits[sha], repo.refs[branch], repo.messages[sha] = tree, sha, message
            if names:
                repo.raw_names[sha] = names
            for data in tree.values():
                if self.is_lfs(data):
                    self.lfs[sha256(data)] = data
            return sha

    @staticmethod
    def is_lfs(data):
        return len(data) > LFS_THRESHOLD

    # ---- faults and records --------------------------------------------------------------------------
    def fault(self, match, times=None, **what):
        self.faults.append(Fault(match, times, **what))

    def clear(self):
        with self.lock:
            self.faults.clear()
            self.requests.clear()
            self.moments.clear()
            self.served.clear()

    def take_fault(self, path):
        with self.lock:
            out = {}
            for fault in self.faults:
                out.update(fault.take(path))
            return out

    def bytes_of(self, data):
        """Bytes that went out for this content."""
        return self.served.get(sha256(data), 0) + self.served.get(git_sha1(data), 0)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    place = ""

    def log_message(self, *args):
        pass

    @property
    def world(self):
        return self.server.world

    def record(self):
        with self.world.lock:
            self.world.requests.append((self.place, self.command, self.path, dict(self.headers)))
            self.world.moments.append(time.monotonic())

    def reply(self, status, body=b"", headers=(), content_type="application/json"):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", content_type)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            out = b""
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                out += self.rfile.read(n)
                self.rfile.readline()
                if n == 0:
                    return out
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def status_fault(self, fault):
        if "status" not in fault:
            return False
        after = fault.get("retry_after")
        headers = [("Retry-After", str(after() if callable(after) else after))] if after else []
        if "code" in fault:
            headers.append(("X-Error-Code", fault["code"]))
        self.reply(fault["status"], {"error": "fault"}, headers)
        return True

    def send_content(self, data, digest, fault, headers=()):
        """The bytes, or the range that was asked for; with whatever is to go wrong."""
        world, start, end, status = self.world, 0, len(data), 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and not fault.get("no_range"):
            start = int(asked.group(1))
            end = min(end, int(asked.group(2)) + 1 if asked.group(2) else end)
            if start >= len(data):
                self.reply(416, b"", [("Content-Range", "bytes */%d" % len(data))])
                return
            status = 206
        if fault.get("wrong_hash"):
            data = bytes([data[0] ^ 1]) + data[1:]
        body = data[start:end]
        length = len(body) + fault.get("wrong_length", 0)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (start, end - 1, len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if length < len(body):
            body = body[:length]
        cut = fault.get("cut")
        limit = len(body) if cut is None else max(1, int(len(data) * cut))
        sent = 0
        while sent < min(limit, len(body)):
            piece = body[sent : min(sent + 16384, limit)]
            try:
                self.wfile.write(piece)
            except OSError:
                self.close_connection = True
                return
            sent += len(piece)
            with world.lock:
                world.served[digest] = world.served.get(digest, 0) + len(piece)
            if fault.get("slow"):
                time.sleep(fault["slow"])
        if sent < length:
            self.wfile.flush()
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True


class StorageHandler(Handler):
    place = "storage"

    def do_GET(self):
        self.record()
        fault = self.world.take_fault("storage" + self.path)
        if self.status_fault(fault):
            return
        digest = self.path.rsplit("/", 1)[1].split("?")[0]
        data = self.world.lfs.get(digest)
        if data is None:
            self.reply(404)
        else:
            self.send_content(data, digest, fault, [("ETag", '"storage-has-its-own"')])

    do_HEAD = do_GET

    def do_PUT(self):
        self.record()
        data = self.body()
        part = re.search(r"part=(\d+)", self.path)
        digest = self.path.rsplit("/", 1)[1].split("?")[0]
        with self.world.lock:
            if part:
                self.world.lfs.setdefault("parts-" + digest, {})[int(part.group(1))] = data
            elif sha256(data) != digest:
                self.reply(400, {"error": "wrong digest"})
                return
            else:
                self.world.lfs[digest] = data
        self.reply(200, b"", [("ETag", '"%s"' % hashlib.md5(data).hexdigest())])

    def do_POST(self):  # the end of an upload in parts
        self.record()
        wanted = json.loads(self.body())
        parts = self.world.lfs.pop("parts-" + wanted["oid"], {})
        data = b"".join(parts[p["partNumber"]] for p in wanted["parts"])
        if sha256(data) != wanted["oid"]:
            self.reply(400, {"error": "wrong digest"})
            return
        self.world.lfs[wanted["oid"]] = data
        self.reply(200, {})


class HubHandler(Handler):
    place = "hub"

    def user(self):
        word = self.headers.get("Authorization", "").partition("Bearer ")[2]
        return self.world.tokens.get(word), bool(word)

    def error(self, status, code, message):
        self.reply(status, {"error": message}, [("X-Error-Code", code), ("X-Error-Message", message)])

    def repo(self, repo_id, write=False):
        """The repository, after the checks of who asks; None when an error was sent."""
        user, gave = self.user()
        repo = self.world.repos.get(repo_id)
        if gave and not user:
            self.error(401, "", "Invalid credentials in Authorization header")
        elif repo is None or (repo.private and not user):
            self.error(404 if user else 401, "RepoNotFound", "Repository not found")
        elif repo.gated and not (user and repo_id in user.get("accepted", ())) and "resolve" in self.path:
            self.error(403 if user else 401, "GatedRepo", "Access to this repository is restricted")
        elif write and not user:
            self.error(401, "", "Log in to write")
        else:
            return repo
        return None

    def revision(self, repo, rev):
        rev = urllib.parse.unquote(rev)
        sha = repo.refs.get(rev) or (rev if rev in repo.commits else None)
        if not sha:
            self.error(404, "RevisionNotFound", "Invalid rev id: %s" % rev)
        return sha

    def describe(self, repo_id, repo, sha, blobs):
        files = []
        names = repo.raw_names.get(sha, {})
        for path, data in sorted(repo.commits[sha].items()):
            entry = {"rfilename": names.get(path, path)}
            if blobs:
                entry.update(size=len(data), blobId=git_sha1(data))
                if Hub.is_lfs(data):
                    entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 134}
            files.append(entry)
        return {"id": repo_id, "modelId": repo_id, "sha": sha, "private": repo.private, "gated": repo.gated,
                "siblings": files, "tags": repo.tags, "cardData": repo.card, "downloads": repo.downloads,
                "lastModified": "2026-01-01T00:00:00.000Z", "createdAt": "2026-01-01T00:00:00.000Z"}

    def do_GET(self):
        self.record()
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        fault = self.world.take_fault("hub" + self.path)
        if self.status_fault(fault):
            return
        if url.path == "/api/models":
            return self.search(query)
        if url.path == "/api/whoami-v2":
            user, gave = self.user()
            if user:
                return self.reply(200, {"type": "user", "name": user["name"], "orgs": []})
            return self.error(401, "", "Invalid username or password.")
        m = re.fullmatch(r"/api/(?:models|datasets|spaces)/([^/]+/[^/]+)(?:/revision/([^/]+))?", url.path)
        if m:
            repo = self.repo(m.group(1))
            sha = repo and self.revision(repo, m.group(2) or "main")
            if sha:
                self.reply(200, self.describe(m.group(1), repo, sha, "blobs" in query))
            return
        m = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)/?", url.path)
        if m:
            return self.tree(m.group(1), m.group(2))
        m = re.fullmatch(r"/(?:datasets/|spaces/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", url.path)
        if m:
            return self.resolve(m.group(1), m.group(2), urllib.parse.unquote(m.group(3)), fault)
        self.reply(404, {"error": "no such page"})

    do_HEAD = do_GET

    def tree(self, repo_id, rev):
        repo = self.repo(repo_id)
        sha = repo and self.revision(repo, rev)
        if not sha:
            return
        rows = []
        for path, data in sorted(repo.commits[sha].items()):
            row = {"type": "file", "path": path, "size": len(data), "oid": git_sha1(data)}
            if Hub.is_lfs(data):
                row["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 134}
            rows.append(row)
        self.reply(200, rows)

    def resolve(self, repo_id, rev, path, fault):
        repo = self.repo(repo_id)
        sha = repo and self.revision(repo, rev)
        if not sha:
            return
        data = repo.commits[sha].get(path)
        if data is None:
            self.error(404, "EntryNotFound", "Entry not found")
            return
        head = [("X-Repo-Commit", sha)]
        if Hub.is_lfs(data):
            head += [("X-Linked-Etag", '"%s"' % sha256(data)), ("X-Linked-Size", str(len(data))),
                     ("ETag", '"%s"' % git_sha1(data)),
                     ("Location", "%s/blob/%s?signature=x" % (self.world.storage_url, sha256(data)))]
            self.reply(302, b"", head)
        else:
            self.send_content(data, git_sha1(data), fault, head + [("ETag", '"%s"' % git_sha1(data))])

    def search(self, query):
        rows = []
        user, _ = self.user()
        for repo_id, repo in self.world.repos.items():
            words = query.get("search", [""])[0].lower()
            if (repo.private and not user) or words not in repo_id.lower():
                continue
            if all(tag in repo.tags for tag in query.get("filter", [])):
                rows.append(self.describe(repo_id, repo, repo.refs.get("main", next(iter(repo.commits))), False))
        self.reply(200, rows[: int(query.get("limit", ["1000"])[0])])

    # ---- writing -------------------------------------------------------------------------------------
    def do_POST(self):
        self.record()
        body = self.body()
        fault = self.world.take_fault("hub" + self.path)
        if self.status_fault(fault):
            return
        path = urllib.parse.urlsplit(self.path).path
        if path == "/api/repos/create":
            return self.create_repo(json.loads(body))
        if path == "/api/validate-yaml":
            return self.reply(200, {"errors": [], "warnings": []})
        m = re.fullmatch(r"/api/models/([^/]+/[^/]+)/preupload/([^/]+)", path)
        if m and self.repo(m.group(1), write=True):
            files = json.loads(body)["files"]
            modes = [{"path": f["path"], "uploadMode": "lfs" if f["size"] > LFS_THRESHOLD else "regular",
                      "shouldIgnore": False, "oid": None} for f in files]
            return self.reply(200, {"files": modes, "commitOid": ""})
        m = re.fullmatch(r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path)
        if m and self.repo(m.group(1), write=True):
            return self.lfs_batch(json.loads(body), fault)
        m = re.fullmatch(r"/([^/]+/[^/]+)\.git/info/lfs/objects/verify", path)
        if m:
            wanted = json.loads(body)
            known = self.world.lfs.get(wanted["oid"])
            return self.reply(200 if known and len(known) == wanted["size"] else 404, {})
        m = re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/([^/]+)", path)
        repo = m and self.repo(m.group(1), write=True)
        if repo:
            return self.do_commit(m.group(1), repo, urllib.parse.unquote(m.group(2)), body)
        if not m:
            self.reply(404, {"error": "no such page"})

    def create_repo(self, wanted):
        user, _ = self.user()
        if not user:
            return self.error(401, "", "Log in to write")
        repo_id = "%s/%s" % (wanted.get("organization") or user["name"], wanted["name"])
        if repo_id in self.world.repos:
            return self.error(409, "", "You already created this model repo")
        self.world.create(repo_id, private=bool(wanted.get("private") or wanted.get("visibility") == "private"))
        self.world.commit(repo_id, {".gitattributes": b"*.safetensors filter=lfs\n"})
        self.reply(200, {"url": "%s/%s" % (self.world.url, repo_id), "name": repo_id})

    def lfs_batch(self, wanted, fault):
        objects = []
        for o in wanted["objects"]:
            out = {"oid": o["oid"], "size": o["size"]}
            if o["oid"] not in self.world.lfs:
                href = "%s/upload/%s" % (self.world.storage_url, o["oid"])
                header = {}
                chunk = fault.get("chunk_size")
                if chunk:
                    header = {"chunk_size": str(chunk)}
                    for n in range((o["size"] + chunk - 1) // chunk):
                        header["%05d" % (n + 1)] = "%s?part=%d" % (href, n + 1)
                repo_id = re.fullmatch(r"/(.+)\.git/.*", self.path).group(1)
                out["actions"] = {"upload": {"href": href, "header": header},
                                  "verify": {"href": "%s/%s.git/info/lfs/objects/verify" % (self.world.url, repo_id),
                                             "header": {}}}
            objects.append(out)
        transfer = "multipart" if fault.get("chunk_size") else "basic"
        self.reply(200, {"transfer": transfer, "objects": objects}, content_type="application/vnd.git-lfs+json")

    def do_commit(self, repo_id, repo, branch, body):
        changes, message, parent = {}, "", None
        for line in body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                message, parent = value["summary"], value.get("parentCommit")
            elif item["key"] == "file":
                data = base64.b64decode(value["content"]) if value.get("encoding") == "base64" else value["content"].encode()
                changes[value["path"]] = data
            elif item["key"] == "lfsFile":
                if value["oid"] not in self.world.lfs:
                    return self.error(400, "", "LFS pointer pointed to a file that does not exist")
                changes[value["path"]] = self.world.lfs[value["oid"]]
            elif item["key"] == "deletedFile":
                changes[value["path"]] = None
        if parent and parent != repo.refs.get(branch):
            return self.error(412, "", "A commit has happened since")
        sha = self.world.commit(repo_id, changes, branch, message)
        readme = repo.commits[sha].get("README.md", b"").decode(errors="replace")
        front = re.match(r"---\n(.*?)\n---\n", readme, re.S)
        if front:
            block = re.search(r"^tags:\n((?:- .*\n?)*)", front.group(1), re.M)
            repo.tags = [t[2:].strip().strip("'\"") for t in block.group(1).splitlines()] if block else []
        self.reply(200, {"success": True, "commitOid": sha, "commitUrl": "%s/%s/commit/%s" % (self.world.url, repo_id, sha),
                         "hookOutput": ""})

    def do_PUT(self):
        self.record()
        body = self.body()
        m = re.fullmatch(r"/api/models/([^/]+/[^/]+)/settings", self.path)
        repo = m and self.repo(m.group(1), write=True)
        if repo:
            wanted = json.loads(body)
            if "private" in wanted:
                repo.private = wanted["private"]
            if "visibility" in wanted:
                repo.private = wanted["visibility"] == "private"
            self.reply(200, {"private": repo.private})
        elif not m:
            self.reply(404, {"error": "no such page"})


def main():
    import pathlib

    parser = argparse.ArgumentParser(description="serve directories as Hub repositories")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("repos", nargs="*", metavar="OWNER/NAME=DIR")
    args = parser.parse_args()
    with Hub(args.port) as hub:
        hub.tokens["hf_test"] = {"name": "tester"}
        for item in args.repos:
            repo_id, _, folder = item.partition("=")
            root = pathlib.Path(folder)
            hub.commit(repo_id, {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()})
        print("HF_ENDPOINT=" + hub.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()

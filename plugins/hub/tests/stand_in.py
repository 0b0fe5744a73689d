"""A stand-in of the hub's HTTP API on this machine: what making and filling a repository asks."""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_of_the_stand_in"


@dataclass
class Repository:
    """What was sent to one."""

    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)


@dataclass
class Hub:
    """The hub: repositories by name, and files of large size by their SHA-256.

    Attributes:
        owner: Who the token belongs to; nobody else's repositories can be written to.
        broken: Paths below which it answers 500.
    """

    owner: str = "me"
    broken: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self._body())

            def do_PUT(self) -> None:
                hub.large[self.path.rpartition("/")[2]] = self._body()
                self._send(200, {})

            def _body(self) -> bytes:
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))

            def _answer(self, body: bytes) -> None:
                path = self.path.partition("?")[0]
                hub.asked.append(path)
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    return self._send(401, {"error": "Invalid username or password."})
                if hub.broken and hub.broken in path:
                    return self._send(400, {"error": "The stand-in says no"})
                self._send(*hub.answer(path, body))

            def _send(self, code: int, content: Any) -> None:
                data = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        """Return status and content of an answer."""
        if path == "/api/whoami-v2":
            return 200, {"name": self.owner, "type": "user", "orgs": []}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if path == "/api/repos/create":
            asked = json.loads(body)
            owner = asked.get("organization") or self.owner
            name = f"{owner}/{asked['name']}"
            if owner != self.owner:
                return 403, {"error": f"You don't have the rights to create a model under {owner}"}
            if name in self.repositories:
                return 409, {"error": "You already created this model repo", "url": self._at(name)}
            private = asked.get("private") or asked.get("visibility") == "private"
            self.repositories[name] = Repository(bool(private))
            return 200, {"url": self._at(name), "name": name, "id": name}
        if path.endswith(".git/info/lfs/objects/batch"):
            objects = [self._place(each) for each in json.loads(body)["objects"]]
            return 200, {"transfer": "basic", "objects": objects}
        head, _, rest = path.removeprefix("/api/models/").partition("/")
        name, _, verb = rest.partition("/")
        repository = self.repositories.get(f"{head}/{name}")
        if repository is None:
            return 404, {"error": "Repository not found"}
        if verb == "preupload/main":
            files = json.loads(body)["files"]
            return 200, {"files": [self._mode(each) for each in files]}
        if verb == "commit/main":
            return 200, self._commit(f"{head}/{name}", repository, body)
        return 404, {"error": f"the stand-in knows no {path}"}

    def _at(self, name: str) -> str:
        return f"{self.url}/{name}"

    def _mode(self, file: dict[str, Any]) -> dict[str, Any]:
        large = str(file["path"]).endswith(".safetensors")
        mode = "lfs" if large else "regular"
        return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": None}

    def _place(self, wanted: dict[str, Any]) -> dict[str, Any]:
        href = f"{self.url}/upload/{wanted['oid']}"
        return {**wanted, "actions": {"upload": {"href": href, "header": {}}}}

    def _commit(self, name: str, repository: Repository, body: bytes) -> dict[str, Any]:
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                repository.messages.append(value["summary"])
            elif entry["key"] == "file":
                repository.files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                repository.files[value["path"]] = self.large[value["oid"]]
        oid = f"{len(repository.messages):040x}"
        url = f"{self._at(name)}/commit/{oid}"
        return {"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": ""}

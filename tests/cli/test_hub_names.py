"""Names of the hub in --data, --dev and --pairs, loaded by its own library from a stand-in."""

import hashlib
import io
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fixtures.serving import Quiet, serving

COMMIT = "0123456789abcdef" * 2 + "01234567"


def parquet(rows: list[dict[str, Any]]) -> bytes:
    held = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), held)
    return held.getvalue()


@contextmanager
def served_hub(
    repositories: Mapping[str, Mapping[str, bytes]], revisions: tuple[str, ...] = ("main",)
) -> Iterator[str]:
    """Serve data sets, each the content of its files by path; yields the hub's address.

    Every revision is ``COMMIT``.
    """

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def as_json(self, value: Any) -> None:
            self.answer(200, json.dumps(value).encode(), Content_Type="application/json")

        def handle_request(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            for name, files in repositories.items():
                for start in (f"/api/datasets/{name}", f"/datasets/{name}"):
                    if path == start or path.startswith(f"{start}/"):
                        what, _, rest = path[len(start) + 1 :].partition("/")
                        return self.of(name, files, what or "revision", rest, body)
            return self.answer(404, b"{}", X_Error_Code="RepoNotFound")

        def of(
            self, name: str, files: Mapping[str, bytes], what: str, rest: str, body: bytes
        ) -> None:
            revision, _, below = rest.partition("/")
            if revision and revision not in (COMMIT, *revisions):
                return self.answer(404, b"{}", X_Error_Code="RevisionNotFound")
            items = {
                path: {"type": "file", "oid": sha1(content), "size": len(content), "path": path}
                for path, content in files.items()
            }
            folders = {path.rpartition("/")[0] for path in files} - {""}
            items |= {f: {"type": "directory", "oid": "1" * 40, "path": f} for f in folders}
            if what == "revision":
                siblings = [{"rfilename": path} for path in files]
                about = {"id": name, "sha": COMMIT, "private": False, "siblings": siblings}
                return self.as_json({**about, "tags": [], "downloads": 0, "likes": 0})
            if what == "tree":
                return self.as_json([i for p, i in items.items() if p.rpartition("/")[0] == below])
            if what == "paths-info":
                wanted = parse_qs(body.decode()).get("paths") or json.loads(body)["paths"]
                return self.as_json([items[path] for path in wanted if path in items])
            if what == "resolve" and below in files:
                tag = f'"{sha1(files[below])}"'
                return self.answer(200, files[below], ETag=tag, X_Repo_Commit=COMMIT)
            return self.answer(404, b"", X_Error_Code="EntryNotFound")

        do_GET = do_HEAD = do_POST = handle_request

    with serving(Handler) as address:
        yield address


def sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


TEXTS = [{"text": f"The {word} is near the station."} for word in ("dog", "boat", "goal", "judge")]
PAIRS = [
    {"sentence1": "A dog runs.", "sentence2": f"The dog runs {n} times.", "score": n / 4}
    for n in range(5)
]
CARD = b"""---
configs:
- config_name: en
  data_files:
  - split: validation
    path: en/validation.parquet
  - split: test
    path: en/test.parquet
- config_name: de
  data_files:
  - split: test
    path: de/test.parquet
---
"""


hub = cache(
    lambda: {
        "owner/texts": {"data/train-00000-of-00001.parquet": parquet(TEXTS * 4)},
        "owner/pairs": {
            "README.md": CARD,
            "en/validation.parquet": parquet(PAIRS),
            "en/test.parquet": parquet(PAIRS[:4]),
            "de/test.parquet": parquet(PAIRS[1:]),
        },
    }
)
TRAIN = ["train", "--train.batch_size", "8", "--train.precision", "fp32", "--data", "owner/texts"]


def told_by(commands: list[list[str]], folder: Path, address: str) -> list[tuple[int, str, str]]:
    """Run commands one after the other in a process that knows a hub; returns code and streams."""
    code = (
        "import contextlib, io, json, sys\n"
        "from cse_cli.main import run\n"
        "said = []\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    out, err = io.StringIO(), io.StringIO()\n"
        "    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):\n"
        "        code = run(words)\n"
        "    said.append((code, out.getvalue(), err.getvalue()))\n"
        "print(json.dumps(said))\n"
    )
    proxies = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "COLUMNS": "160"}
    env = {**os.environ, **proxies, "HF_ENDPOINT": address, "HF_HOME": str(folder / "home")}
    env.pop("HF_HUB_OFFLINE", None)
    words = [sys.executable, "-c", code, json.dumps(commands)]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: list[tuple[int, str, str]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_names_of_the_hub_with_configuration_split_and_revision(tmp_path: Path) -> None:
    dev = ["--dev", "owner/pairs:en@validation#v1"]
    out = str(tmp_path / "run")
    evaluated = ["eval", "starter", "--json", "--no-baselines"]
    with served_hub(hub(), ("main", "v1")) as address:
        plan, trained, scored, german, fetched, *refused = told_by(
            [
                [*TRAIN, *dev, "--dry-run", "--json"],
                [*TRAIN, *dev, "--out", out, "--json"],
                [*evaluated, "--pairs", "owner/pairs:en"],
                [*evaluated, "--pairs", "owner/pairs:de@test"],
                ["data", "fetch", "owner/pairs:de@test", "--out", str(tmp_path / "x.jsonl")],
                [*TRAIN, "--dev", "owner/pairs:en@train", "--dry-run"],
                [*TRAIN, "--dev", "owner/nothing", "--dry-run"],
                [*TRAIN[:-1], "owner/texts@test", "--dry-run"],
                [*TRAIN[:-1], "owner/texts#v2", "--dry-run"],
                [*evaluated, "--pairs", "owner/pairs:fr"],
            ],
            tmp_path,
            address,
        )
    assert plan[0] == trained[0] == scored[0] == german[0] == 0, (plan, trained, scored, german)
    assert json.loads(plan[1])["evaluation"]["sets"] == {"pairs-en.dev": {"texts": 6}}
    assert json.loads(trained[1])["chosen_by"] == "pairs-en.dev.spearman"
    record = tomllib.loads((tmp_path / "run/run.toml").read_text(encoding="utf-8"))
    assert record["data"]["path"] == [f"owner/texts#{COMMIT}"]
    assert record["train"]["dev"] == [f"owner/pairs:en@validation#{COMMIT}"]
    (tmp_path / "run/result.json").unlink()  # as if it had been killed before its end
    with served_hub(hub()) as address:  # v1 is gone
        ((code, _, error),) = told_by([["train", "--resume", out]], tmp_path, address)
    assert code == 0 and f"16 rows of owner/texts#{COMMIT}" in error
    english = json.loads(scored[1])["results"]["pairs-en.test"]
    assert (english["file"], english["pairs"]) == (f"owner/pairs:en@test#{COMMIT}", 4)
    assert json.loads(german[1])["results"]["pairs-de.test"]["pairs"] == 4
    assert fetched[0] == 0, fetched
    assert len((tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()) == 4
    errors = [
        "no split train; its splits: validation, test; name one: owner/pairs:en@validation",
        "owner/nothing: cannot load this data set from the hub",
        "no split test; its splits: train",
        "owner/texts#v2: cannot load this data set from the hub",
        "owner/pairs:fr: cannot load this data set from the hub",
    ]
    for (code, shown, error), wanted in zip(refused, errors, strict=True):
        assert code == 2 and shown == "" and wanted in error.splitlines()[-1]

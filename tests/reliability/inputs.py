"""The tables of inputs: what is typed, which files lie there, and what has to be the answer.

A case of ``inputs/*.toml``::

    [[case]]
    words = "train --data ok.txt --train.lr -1"
    says = ["train.lr", "-1"]

``words`` is read as a shell would. ``expect`` is ``clear`` (default) or ``accepted``. ``files``
holds texts by name, ``made`` names a maker (``"fifo as texts.txt"``), ``changed`` new values in a
JSON file of these, ``stdin`` a text, ``env`` variables; in words, files and stdin ``<9*5000>`` is
5,000 nines. In every folder lie ``ok.txt``, ``pairs.tsv`` and ``folder``.

Lists of ``words``, ``made``, ``files`` and ``changed`` are alternatives: each combination is a
case. ``[default]`` is what a table's cases have in common.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, ConfigDict

from tests.reliability.makers import MAKERS
from tests.reliability.outcomes import Answer, Outcome, classify
from tests.reliability.server import SECONDS, Server

TABLES = Path(__file__).with_name("inputs")
ALTERNATIVES = ("words", "made", "files", "changed")
TEXTS = "".join(f"the {thing} is {how}\n" for thing in ("dog", "boat", "judge", "goal", "train")
                for how in ("old", "near", "green", "late"))  # fmt: skip
PAIRS = "sentence1\tsentence2\tscore\n" + "".join(
    f"the dog is {how}\tthe {thing} is {how}\t{score}\n"
    for score, thing in enumerate(("judge", "boat", "goal", "dog"))
    for how in ("old", "near", "green")
)


class InputCase(BaseModel):
    """A command line and what has to come of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    words: str
    table: str = ""
    says: tuple[str, ...] = ()
    expect: Outcome = Outcome.CLEAR
    files: dict[str, str] = {}
    made: str = ""
    changed: dict[str, dict[str, Any]] = {}
    stdin: str = ""
    env: dict[str, str] = {}
    seconds: float = SECONDS

    @property
    def typed(self) -> list[str]:
        return [repeated(word) for word in shlex.split(self.words)]

    @property
    def label(self) -> str:
        words = " ".join(self.typed).encode("ascii", "backslashreplace").decode()
        changes = (f"{name} {list(values)}" for name, values in self.changed.items())
        made = ", ".join(filter(None, (self.made, *self.files, *changes)))
        return f"{self.table}: {words[:90]}{f' [{made[:80]}]' if made else ''}"

    def lay_out(self, folder: Path) -> None:
        (folder / "folder").mkdir()
        if self.made:
            name, _, target = self.made.partition(" as ")
            path = folder / (target or name)
            path.parent.mkdir(parents=True, exist_ok=True)
            MAKERS[name](path)
        for name, text in {"ok.txt": TEXTS, "pairs.tsv": PAIRS, **self.files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(repeated(text), encoding="utf-8", newline="")
        for name, values in self.changed.items():
            path = folder / name
            path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}))


def repeated(text: str) -> str:
    return re.sub(r"<([^<>]+?)\*([0-9]+)>", lambda found: found[1] * int(found[2]), text)


def alternatives(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a case for each combination of what has a list."""
    lists = {name: case[name] for name in ALTERNATIVES if isinstance(case.get(name), list)}
    for chosen in product(*lists.values()):
        yield {**case, **dict(zip(lists, chosen, strict=True))}


def input_cases() -> list[InputCase]:
    found = []
    for path in sorted(TABLES.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for case in content["case"]:
            every = alternatives({**content.get("default", {}), **case})
            found += [InputCase(table=path.stem, **each) for each in every]
    return found


def there(folder: Path) -> Iterator[str]:
    yield from sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def tried(case: InputCase, server: Server) -> tuple[Outcome, Answer, str]:
    """Run a case in a folder of its own; a refusal that leaves something behind is not clear."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        case.lay_out(folder)
        before = list(there(folder))
        answer = server.call(
            case.typed,
            folder,
            env=case.env,
            given=repeated(case.stdin).encode(),
            seconds=case.seconds,
        )
        outcome = classify(answer, case.expect, case.says)
        if outcome is Outcome.CLEAR and list(there(folder)) != before:
            outcome = Outcome.SILENT
        return outcome, answer, ""

"""What nobody thought of: drawn recipes, options, data files and states of a run.

Nothing may end in a traceback, hang, or be refused without a line. A failing draw is printed by
hypothesis, and belongs into a table of cases then.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import tomlkit
from cse_testkit import tiny_encoder
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cse_cli.plugins.installed import Installed
from cse_core.recipes.compose import resolve
from cse_core.training.recipe_file import as_recipe
from tests.reliability.inputs import PAIRS, TEXTS
from tests.reliability.outcomes import Answer
from tests.reliability.server import Server, the_server

pytestmark = pytest.mark.slow
# A draw that fails is printed as it is: to shrink it takes an hour of runs.
MANY = settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
FEW = settings(MANY, max_examples=60)
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12),
    st.integers(min_value=10**400, max_value=10**401),
    st.lists(st.one_of(st.integers(), st.text(max_size=4)), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
    st.sampled_from(["", "none", "auto", "all", "nan", "inf", "-1", "1e400", "1/0", "(" * 500]),
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Server:
    return the_server()


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    """A recipe with parts of every kind, every setting written out."""
    return as_recipe(resolve(Installed().registry, recipe="mocose"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """A folder with a run that was stopped: its last checkpoint is there, its result is not."""
    folder = tmp_path_factory.mktemp("fuzz")
    tiny_encoder(folder / "encoder")
    (folder / "ok.txt").write_text(TEXTS, encoding="utf-8")
    words = "train --recipe mocose --model ./encoder --data ok.txt --dev none --train.batch_size 8"
    more = "--train.max_steps 6 --train.save_steps 2 --train.device cpu --out run"
    answer = server.call(f"{words} {more}".split(), folder)
    assert answer.code == 0, answer
    (folder / "run" / "result.json").unlink()
    shutil.rmtree(folder / "run" / "model")
    return folder


def check(answer: Answer) -> None:
    """Check that an answer is an end of one of the two good kinds."""
    assert not answer.hung, answer
    assert answer.code in (0, 2), answer
    assert "Traceback" not in answer.err, answer
    if answer.code:
        lines = [line for line in answer.err.splitlines() if line.startswith("error: ")]
        assert lines, answer
        assert all(len(line) < 2_000 for line in lines), answer


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield every place of nested dictionaries and lists."""
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy with something else at a place."""
    if not path:
        return new
    copy = deepcopy(value)
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return copy


@MANY
@given(data=st.data())
def test_a_recipe_with_something_else_in_a_place(
    data: st.DataObject, server: Server, recipe: dict[str, Any]
) -> None:
    path = data.draw(st.sampled_from([place for place in places(recipe) if place]))
    new = data.draw(JUNK)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ok.txt").write_text(TEXTS, encoding="utf-8")
        try:
            text = tomlkit.dumps(changed(recipe, path, new))
        except (ValueError, TypeError):  # no TOML holds it
            return
        (folder / "r.toml").write_text(text, encoding="utf-8", errors="surrogatepass")
        check(server.call(["train", "--recipe", "r.toml", "--data", "ok.txt", "--dry-run"], folder))


@FEW
@given(
    name=st.sampled_from(["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.txt.gz", "a.json"]),
    content=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.lists(JUNK, max_size=4).map(
            lambda values: "\n".join(json.dumps(value) for value in values).encode()
        ),
    ),
)
def test_a_data_file_of_drawn_bytes(name: str, content: bytes, server: Server) -> None:
    with TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        (folder / name).write_bytes(content)
        (folder / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
        for words in (["data", "stats", name], ["train", "--data", name, "--dry-run"],
                      ["eval", "starter", "--pairs", name],
                      ["search", "starter", "a query", "--data", name]):  # fmt: skip
            check(server.call(words, folder))


@FEW
@given(data=st.data())
def test_a_state_with_something_else_in_a_place(
    data: st.DataObject, server: Server, finished: Path
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name) / "work"
        shutil.copytree(finished, folder)
        files = sorted(
            path.relative_to(folder) for path in (folder / "run").rglob("*")
            if path.suffix in (".json", ".jsonl", ".toml")
        )  # fmt: skip
        file = folder / data.draw(st.sampled_from(files))
        if file.suffix == ".json" and data.draw(st.booleans()):
            value = json.loads(file.read_text(encoding="utf-8"))
            path = data.draw(st.sampled_from(list(places(value))))
            file.write_text(json.dumps(changed(value, path, data.draw(JUNK))), encoding="utf-8")
        else:
            content = bytearray(file.read_bytes())
            place = data.draw(st.integers(0, max(len(content) - 1, 0)))
            content[place : place + data.draw(st.integers(0, 40))] = data.draw(
                st.binary(max_size=9)
            )
            file.write_bytes(bytes(content))
        check(server.call(["train", "--resume", "run"], folder))

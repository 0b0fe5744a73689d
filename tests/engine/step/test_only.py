"""Losses of some rows of a batch, by their text in a column: the same as batches of these rows."""

from pathlib import Path

import pytest
import torch

from cse_core.errors import CseError
from cse_core.texts import DataOptions, NeededColumns
from cse_core.types import Positives
from cse_defaults.texts import Corpus, load_corpus
from cse_engine.compose.checks import check_only
from cse_engine.step.row_keys import rows_that_hold
from tests.fixtures.tiny import Bench, composed, sentences

PARTS = """
[[pool]]
use = "mean"
[views.positive]
column = "positive"
[views.negative]
column = "negative"
[[loss]]
use = "infonce"
in_batch = "both"
"""
TWO = (
    PARTS
    + """
[[loss]]
use = "infonce"
name = "second"
only = {group = "b"}
directions = "both"
"""
)
TEXTS = sentences(40)
COLUMNS = {
    "text": TEXTS[:12],
    "positive": TEXTS[12:24],
    "negative": TEXTS[24:36],
    "group": list("aabbabbaabab"),
}
QUIET = "model.dropout=0"


def test_a_loss_sees_its_rows_alone(encoder: str, folder: Path) -> None:
    rows = list(range(2, 9))
    own = [row for row in rows if COLUMNS["group"][row] == "b"]
    both = Bench(encoder, folder, TWO, QUIET, columns=COLUMNS)
    mixed = both.step(index=rows).parts
    plain = PARTS + '[[loss]]\nuse = "infonce"\nname = "second"\ndirections = "both"\n'
    whole = Bench(encoder, folder, plain, QUIET, columns=COLUMNS)
    torch.testing.assert_close(mixed["infonce.loss"], whole.step(index=rows).parts["infonce.loss"])
    alone = Bench(encoder, folder, plain, QUIET, columns=COLUMNS).step(index=own).parts
    torch.testing.assert_close(mixed["second.loss"], alone["second.loss"])
    for name in ("second.negatives", "second.negatives.in-batch", "second.negatives.negative"):
        torch.testing.assert_close(mixed[name], alone[name])
    none = [row for row in rows if row not in own]
    assert "second.loss" not in both.step(1, none).parts, "there is none of its rows"


def test_positives_that_anchors_share_keep_their_places(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, TWO, QUIET, columns=COLUMNS)
    seen = bench.seen()
    bench.step(index=list(range(4)))
    batch = seen["loss.infonce", "__call__"][0][0]
    group = Positives(torch.randn(4, 2, 3), torch.ones(4, 2), torch.tensor([0, 3, 4, 7]))
    batch = type(batch)(**{**batch.__dict__, "targets": {"shared": group}})
    found = rows_that_hold(batch, {"group": "b"}, lambda name: list("abab")).targets["shared"]
    torch.testing.assert_close(found.vectors, group.vectors[[1, 3]])
    assert found.distinct is not None and found.distinct.tolist() == [1, 3]
    assert rows_that_hold(batch, {"group": "b"}, lambda name: list("bbbb")) is batch


def test_a_value_that_no_row_has_is_refused(encoder: str, folder: Path) -> None:
    corpus = Corpus.from_columns({**COLUMNS, "topic": list("xxyxxyxxxxxx")})
    names = ("text", "positive", "negative", "group", "topic")

    def refused(only: str) -> list[str]:
        recipe = f'{PARTS}[[loss]]\nuse = "infonce"\nname = "second"\nonly = {{{only}}}\n'
        run = composed(encoder, recipe, folder=folder, columns=names)
        return [error.line() for error in check_only(run, corpus)]

    assert refused('group = "a"') == refused('group = "b", topic = "y"') == []
    (line,) = refused('group = "9"')
    assert line.startswith("loss.second.only.group: no row has it") and "'a', 'b'" in line
    (line,) = refused('group = "a", topic = "y"')
    assert line.startswith("loss.second.only: no row has it")


def test_a_file_may_lack_what_losses_of_other_rows_read(
    encoder: str, folder: Path, tmp_path: Path
) -> None:
    graded = PARTS + '[[loss]]\nuse = "graded"\nonly = {group = "1"}\n'
    columns = ("text", "positive", "negative", "group", "score", "topic")
    needed = composed(encoder, graded, folder=folder, columns=columns).needed_columns
    assert needed.partial == {"score", "topic"} and "group" in needed.required
    (tmp_path / "a.csv").write_text("text,positive,negative\nx,y,z\n")
    (tmp_path / "b.csv").write_text("text,positive,negative,score,topic\nv,w,u,0.5,fun\n")
    names = tuple(str(tmp_path / name) for name in ("a.csv", "b.csv"))
    options = DataOptions(path=names, columns={"group": "@source"})
    corpus = load_corpus(options, needed=needed)
    assert corpus.values("score", "float").tolist() == [0.0, 0.5]
    whole = NeededColumns(needed.required, needed.encoded, needed.types)
    with pytest.raises(CseError, match="no column score"):
        load_corpus(options, needed=whole)
    with pytest.raises(CseError, match="column 'group'"):
        composed(encoder, graded, folder=folder, columns=columns[:3] + columns[4:])

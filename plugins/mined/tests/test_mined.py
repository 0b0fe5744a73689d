"""Which texts are negatives, against a search in loops; rounds, resume, texts of a file."""

import json
import random
import signal
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_mined import mined
from cse_mined.options import MinedOptions
from cse_testkit import make_part
from cse_testkit.tiny import shared_encoder
from torch import Tensor

import cse
from cse_cli.main import run
from cse_core.errors import CseError
from cse_core.functional import unit
from cse_core.parts import RoundContext
from cse_core.types import Round
from cse_defaults.texts import Corpus
from tests.fixtures.methods import round_context

ROWS = 40
TEXTS = [f"anchor {i % 30}" for i in range(ROWS)]  # ten anchors have two positives
POSITIVES = [f"text {i % 35}" for i in range(ROWS)]  # five positives have two anchors


PAIRS = {"text": TEXTS, "positive": POSITIVES}


def drawn(texts: Sequence[str]) -> Tensor:
    """Return vectors that are drawn by the text."""
    draws = [np.random.default_rng(zlib.crc32(text.encode())) for text in texts]
    return torch.from_numpy(np.stack([each.normal(size=6) for each in draws]).astype(np.float32))


def between(columns: Mapping[str, Sequence[str]] = PAIRS, encode: Any = drawn) -> RoundContext:
    """Return the context of a round that two processes share."""

    def shared(count: int, make: Any, at_once: int = 1) -> Tensor:
        middle = min(-(-count // at_once) // 2 * at_once, count)
        return torch.cat([make(0, middle), make(middle, count)])

    ctx = round_context(Corpus.from_columns(columns), seed=7, encode=encode)
    return replace(ctx, shared=shared)


def miner(ctx: Any = None, **options: Any) -> Any:
    made = make_part("positives", "mined", **options)
    made.prepare((ctx or between()).corpus)
    return made


def one_round(ctx: Any = None, **options: Any) -> Round:
    made = miner(ctx, **options).next_round(ctx or between())
    assert isinstance(made, Round)
    return made


def slow(row: int, *, skip: int, margin: float, relative: bool, depth: int) -> list[str]:
    """Return the negatives of a row, the nearest first."""
    anchor = TEXTS[row]
    theirs = {p for t, p in zip(TEXTS, POSITIVES, strict=True) if t == anchor}
    vectors = {t: unit(drawn([t]))[0] for t in {anchor, *POSITIVES}}
    own = float(vectors[anchor] @ vectors[POSITIVES[row]])
    most = own - (abs(own) * margin if relative else margin)
    near = {t: float(vectors[anchor] @ vectors[t]) for t in set(POSITIVES) - theirs}
    ranked = sorted(near, key=lambda text: -near[text])[:depth]
    return [text for text in ranked[skip:] if near[text] < most]


@pytest.mark.parametrize(
    ("skip", "margin", "strategy", "depth", "number"),
    [
        (0, 0.05, "relative", 100, 1),
        (3, 0.2, "absolute", 10, 3),
        (0, -0.5, "relative", 8, 4),
        (2, 0.0, "absolute", 100, 3),
    ],
)
def test_negatives_are_those_of_a_search_in_loops(
    skip: int, margin: float, strategy: str, depth: int, number: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(mined, "BLOCK", 11)
    monkeypatch.setattr(mined, "AT_ONCE", 7)
    found = one_round(skip=skip, margin=margin, strategy=strategy, depth=depth, number=number)
    expected = []
    for row in range(ROWS):
        given = {"skip": skip, "margin": margin, "depth": depth}
        fine = slow(row, relative=strategy == "relative", **given)  # type: ignore[arg-type]
        expected += [(row, text) for text in fine[:number]]
    rows: Any = found.pairs["text"]
    assert list(zip(rows.tolist(), found.pairs["negative"], strict=True)) == expected
    assert 0 < len({*rows.tolist()}) < ROWS, "some anchors have none"
    assert "positive" not in found.pairs


def test_drawn_ones_are_among_the_fine_and_differ_by_row() -> None:
    given: Any = {"margin": -2.0, "strategy": "absolute", "depth": 12, "number": 3}
    found = one_round(take="drawn", **given)
    near = one_round(**given)
    again = one_round(take="drawn", **given)
    assert list(found.pairs["negative"]) == list(again.pairs["negative"])
    assert list(found.pairs["negative"]) != list(near.pairs["negative"])
    rows: Any = found.pairs["text"]
    pairs = list(zip(rows, found.pairs["negative"], strict=True))
    drawn = [{text for own, text in pairs if own == row} for row in range(ROWS)]
    assert any(drawn[row] != drawn[row + 30] for row in range(10)), "of one text"
    for row, taken in enumerate(drawn):
        fine = slow(row, skip=0, margin=-2.0, relative=False, depth=12)
        assert len(taken) == 3 and taken <= {*fine}


def test_a_round_searches_for_a_share_of_the_rows_and_the_next_for_others() -> None:
    given: Any = {"rounds": 4, "margin": -1.0}
    whole = miner(**given).next_round(between()).pairs
    negative = dict(zip(whole["text"].tolist(), whole["negative"], strict=True))
    part = miner(rows=15, **given)
    shares = [part.next_round(between()).pairs for _ in range(3)]
    for share in shares:
        rows = share["text"].tolist()
        assert rows == sorted({*rows}) and len(rows) == 15
        assert [negative[row] for row in rows] == list(share["negative"])
    seen = [{*share["text"].tolist()} for share in shares]
    assert not seen[0] & seen[1] and len(seen[0] | seen[1] | seen[2]) == ROWS, "five come again"


def test_rounds_end_where_nothing_is_far_enough_any_more() -> None:
    part = miner(rounds=3, margin=-1.0)
    assert part.next_round(between()).keep_optimizer
    near = between(encode=lambda texts: torch.ones(len(texts), 6))
    part.options = part.options.model_copy(update={"margin": 0.5})
    assert part.next_round(near) is None and part.next_round(between()) is None


def test_plain_texts_are_their_own_positives() -> None:
    found = one_round(between({"text": TEXTS}), margin=0.1)
    rows: Any = found.pairs["positive"]
    assert rows.tolist() == found.pairs["text"].tolist()  # type: ignore[union-attr]
    for row, negative in zip(rows, found.pairs["negative"], strict=True):
        assert negative in TEXTS and negative != TEXTS[row]


def test_no_text_is_its_own_negative() -> None:
    ctx = between({"text": ["a", "b"], "positive": ["b", "c"]})
    found = one_round(ctx, margin=-2.0, strategy="absolute").pairs
    assert (list(found["text"]), list(found["negative"])) == ([0], ["c"]), "b has c and itself"


def test_texts_of_a_file_may_be_negatives(tmp_path: Path) -> None:
    file = tmp_path / "more.txt"
    file.write_text("".join(f"other {i}\n" for i in range(200)))
    found = one_round(texts=str(file), margin=-1.0, number=5)
    assert {text.split()[0] for text in found.pairs["negative"]} == {"text", "other"}


def test_what_leaves_nothing_is_refused() -> None:
    with pytest.raises(CseError, match="no anchor has a text that is far enough"):
        one_round(margin=2.0, strategy="absolute")
    with pytest.raises(ValueError, match="raise depth"):
        make_part("positives", "mined", depth=5, skip=5)


def test_a_run_mines_again_and_resumes_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draws = random.Random(0)
    words = [f"{a}{b}" for a in "bdfgkl" for b in "aeiou"]
    texts = [" ".join(draws.choices(words, k=6)) for _ in range(48)]
    file = tmp_path / "pairs.jsonl"
    rows = [{"text": a, "positive": b} for a, b in zip(texts[:24], texts[24:], strict=True)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sets = {
        "positives.mined.every": 3, "positives.mined.rounds": 3, "positives.mined.margin": -1,
        "train.max_steps": 9, "train.batch_size": 4, "train.lr": 0.01, "train.device": "cpu",
        "train.precision": "fp32", "train.warmup": 0, "train.log_steps": 1,
    }  # fmt: skip
    given: Any = {
        "model": str(shared_encoder()),
        "data": str(file),
        "dev": "none",
        "options": sets,
        "quiet": True,
    }
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert cse.train("mined", out=whole, **given).outcome.steps == 9
    lines = map(json.loads, (whole / "metrics.jsonl").read_text().splitlines())
    rates = [line["lr"] for line in lines]
    assert rates == pytest.approx([0.01 * (9 - step) / 9 for step in range(9)])
    encoded = mined.Mined._encoded
    calls: list[int] = []

    def interrupted(self: mined.Mined, texts: mined.Texts, ctx: Any) -> Tensor:
        calls.append(self.mined)
        if calls == [1, 2]:
            signal.raise_signal(signal.SIGTERM)  # the run ends after the next step
        return encoded(self, texts, ctx)

    monkeypatch.setattr(mined.Mined, "_encoded", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cse.train("mined", out=part, **given)
    cse.resume(part, quiet=True)
    assert calls == [1, 2, 3]
    kept = [[(run / f"rounds/{n}/checksums.json").read_bytes() for n in (1, 2, 3)]
            for run in (whole, part)]  # fmt: skip
    assert kept[0] == kept[1] and len({*kept[0]}) == 3, "the model moves, and so do its negatives"
    name = "model/model.safetensors"
    assert (whole / name).read_bytes() == (part / name).read_bytes()
    assert run(["data", "show-pairs", str(whole), "--rows", "1"]) == 0
    shown = {*map(str.strip, capsys.readouterr().out.splitlines())}
    assert shown & {*texts[24:]}, "positives of the data"


def test_rounds_are_shares_of_the_run() -> None:
    assert MinedOptions(rounds=4).steps_of(66) == 16
    assert MinedOptions(rounds=4, every=9).steps_of(66) == 9
    assert MinedOptions(rounds=4).steps_of(None) is None
    for options, steps in ((MinedOptions(rounds=4, every=17), 66), (MinedOptions(rounds=4), 3)):
        with pytest.raises(ValueError, match=f"the run has {steps} steps, not 4 rounds of"):
            options.steps_of(steps)

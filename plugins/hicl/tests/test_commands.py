"""Commands of docs/methods/hicl.md that other methods are part of: what they come to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cse_testkit import Rig, compose, installed_registry, run_steps

from cse_cli.training.plan import data_flow
from cse_core.capabilities import Role
from cse_core.data import Corpus
from cse_core.runtime.reporter import Reporter
from cse_core.tokenization.split import split_texts
from cse_core.training.run import train

SHORT = "pool.segments.length=4"


def needs_recipe(name: str) -> None:
    """Skip where a base method is not installed."""
    if name not in {each.name for each in installed_registry().recipes()}:
        pytest.skip(f"no installed plugin brings the recipe {name}")


def test_the_literal_local_positive_over_esimcse_is_a_setting() -> None:
    """Section 3.2: a segment's positive differs by dropout alone, so without dropout by nothing.

    The local loss is then that of hicl, and the global one has its repeated texts as before.
    """
    needs_recipe("esimcse")
    sets = [SHORT, "model.dropout=0", "aug.word-repetition.rate=0.9"]
    plain = run_steps(recipe="hicl", sets=sets[:2], steps=1).scalars[0]
    default = run_steps(recipe="hicl-esimcse", sets=sets, steps=1).scalars[0]
    run = run_steps(recipe="hicl-esimcse", sets=[*sets, "loss.local.target=identical"], steps=1)
    literal = run.scalars[0]
    assert literal["local.loss"] == pytest.approx(plain["local.loss"], rel=1e-5)
    assert default["local.loss"] != pytest.approx(plain["local.loss"], rel=1e-5)
    assert literal["global.loss"] == pytest.approx(default["global.loss"], rel=1e-5)
    assert literal["global.loss"] != pytest.approx(plain["global.loss"], rel=1e-5)
    found = data_flow(run.composition)
    assert any(line.startswith("identical -> loss.local") for line in found)
    assert any(line.startswith("positive -> loss.global") for line in found)
    assert "aug.word-repetition -> positive" in found


@pytest.mark.parametrize("recipe", ["simcse", "hicl"])
def test_sentences_and_paragraphs_are_two_files_in_batches_of_64(
    recipe: str, tmp_path: Path
) -> None:
    """Table 5: a file of sentences and one of paragraphs, a row each, for base method and HiCL."""
    needs_recipe(recipe)
    files = [tmp_path / name for name in ("wiki.txt", "wikitext.txt")]
    files[0].write_text("boat lamp\n" * 3 + "drum\n", encoding="utf-8")
    files[1].write_text("kite clock bell. " * 30 + "\n" + "the old boat " * 9 + "\n", "utf-8")
    sets = [
        f"data.path=[{files[0]},{files[1]}]", "train.batch_size=64", "train.max_steps=1",
        "train.device=cpu",
    ]  # fmt: skip
    composition = compose(recipe=recipe, sets=sets)
    assert composition.train.batch_size == 64
    printed: list[str] = []

    class Listener(Reporter):
        def message(self, text: str) -> None:
            printed.append(text)

    train(composition, installed_registry(), out=tmp_path / "run", reporter=Listener())
    assert any(line.startswith("6 rows of") for line in printed), printed


@pytest.mark.parametrize(
    ("recipe", "longest"), [("simcse", 34), ("esimcse", 34), ("sncse", 64), ("hicl", 512)]
)
def test_texts_cut_into_texts_of_32_are_encoded_whole(recipe: str, longest: int) -> None:
    """Table 6: what the commands say leaves room for a piece, and for the prompt around it."""
    needs_recipe(recipe)
    corpus = Corpus.from_columns({"text": ["boat", "boat lamp " * 300, "drum " * 33, "bell " * 64]})
    composition = compose(recipe=recipe, sets=[f"model.max_length={longest}"], corpus=corpus)
    sentence_encoder = Rig(composition, corpus).assembly.online
    pieces = split_texts(corpus, sentence_encoder.tokenizer, 32).column("text")[:]
    content = sentence_encoder.tokenizer.content(pieces)
    assert int(content.lengths.max()) == 32 and len(pieces) > 20
    roles: tuple[Role, ...] = ("anchor", "positive", "soft_negative")
    for role in roles:
        rows = sentence_encoder.rows(content, role)
        kept = torch.zeros(len(pieces), dtype=torch.long)
        kept.index_add_(0, rows.owner, rows.content_lengths())
        assert bool((kept >= content.lengths).all())

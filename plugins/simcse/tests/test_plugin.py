"""The kit over SimCSE's distribution, parts and recipes, and what the kit cannot know."""

from pathlib import Path

import torch
from cse_testkit import (
    compose,
    installed_registry,
    make_context,
    make_part,
    part_suites,
    recipe_suites,
    run_steps,
    shared_encoder,
    tiny_corpus,
    tiny_encoder,
)
from transformers import AutoModel, AutoTokenizer

from cse_cli.models.saved_model import load
from tests.fixtures.methods import refusal

globals().update(recipe_suites("cse-simcse", Path(__file__).parent / "settings"))
globals().update(
    part_suites("cse-simcse", {"negatives.hard-negatives": {"options": {"weight": 0.7}}})
)


def test_the_mean_of_the_last_two_hidden_states(tmp_path: Path) -> None:
    texts = ["Anna paints the boat.", "boat", "clara finds the old clock and not the attic " * 3]
    for layers in (1, 2, 4):
        folder = shared_encoder()
        if layers != 2:
            folder = tiny_encoder(tmp_path / f"bert-{layers}", layers=layers)
        model, tokenizer = (kind.from_pretrained(folder) for kind in (AutoModel, AutoTokenizer))
        found = load(str(folder), installed_registry(), pooling="avg-top2").encode(texts)
        for text, vector in zip(texts, found, strict=True):
            with torch.no_grad():
                states = model.eval()(
                    **tokenizer(text, return_tensors="pt"), output_hidden_states=True
                ).hidden_states
            wanted = (states[-1] + states[-2])[0].mean(dim=0) / 2
            assert torch.allclose(torch.from_numpy(vector), wanted, atol=1e-5)


def test_the_column_of_the_negatives_is_an_option() -> None:
    store = make_part("negatives", "hard-negatives", column="contradiction")
    texts = ["Nobody paints.", "The boat is gone."]
    (view,) = store.views(torch.arange(2), make_context(texts={"contradiction": texts}))
    assert view.texts == texts and view.name == view.role == "negative"


def test_triplets_without_a_negative_are_refused_in_one_line() -> None:
    corpus = tiny_corpus(columns=("positive",))
    line = refusal(compose, recipe="simcse-supervised", corpus=corpus)
    assert "negatives.hard-negatives" in line and "column 'negative'" in line
    assert "--set data.columns.negative=" in line


def test_dropout_alone_makes_the_two_views_and_the_recipe_learns() -> None:
    """Sixty steps over the same twelve sentences bring the loss down by half."""
    off = run_steps(recipe="simcse", steps=1, sets=["model.dropout=0"])
    assert run_steps(recipe="simcse", steps=1).losses[0] != off.losses[0]
    sets = ["train.batch_size=12", "train.lr=0.003", "train.schedule=constant"]
    run = run_steps(recipe="simcse", steps=60, sets=sets, corpus=tiny_corpus(12))
    assert sum(run.losses[-5:]) < 0.5 * sum(run.losses[:5])

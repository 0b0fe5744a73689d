"""``cse eval --aug``: pairs whose second sentences are changed before they are encoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_evaluation.changed import ROWS, ChangedTexts, Changer
from cse_evaluation.cli.changes import Changes
from cse_evaluation.pairs import read_pairs
from cse_evaluation.vectors import EncodedTexts
from cse_testkit import installed_registry, shared_encoder, tiny_encoder

from cse_cli.models.saved_model import load
from tests.fixtures.command_line import Cse, refused

FIRST = ["anna paints the boat", "emil repairs a lamp", "clara hides it", "the old clock", "a bell"]
OTHER = ["das boot", "die lampe", "der garten findet", "die uhr", "der die das"]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    lines = ["score\tsentence1\tsentence2\tfraternal"]
    lines += [f"{i}\t{a}\t{FIRST[-1 - i]} again\t{OTHER[i]}" for i, a in enumerate(FIRST)]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join([*lines, lines[1]]) + "\n", encoding="utf-8")
    return path


def changed(pairs: Path, *names: str, dropout: bool = False, sets: tuple[str, ...] = ()) -> Any:
    """Return the vectors of the second sentences as they are, and changed."""
    torch.set_num_threads(1)
    plugins: Any = type("Plugins", (), {"registry": installed_registry()})()
    model = load(str(shared_encoder()), plugins.registry)
    read = read_pairs(pairs)
    changes = Changes(names, sets, dropout, seed=3)
    encode = changes.encoder(model, EncodedTexts(model.encode, read.texts), [read], plugins)
    seconds = [pair.sentence2 for pair in read.pairs]
    assert not model.sentence_encoder.encoder.training
    return encode(seconds), encode.changed(seconds), model, encode


def test_a_text_augmenter_changes_the_text(pairs: Path) -> None:
    """A span of five characters masked, by the part's own draws."""
    plain, other, _, _ = changed(pairs, "span-mask", sets=("aug.span-mask.shortest=1",))
    assert not np.allclose(plain, other, atol=1e-3)
    same = changed(pairs, "span-mask", sets=("aug.span-mask.shortest=1",))[1]
    assert np.array_equal(other, same), "the same seed, the same draws"
    long = changed(pairs, "span-mask", sets=("aug.span-mask.shortest=999",))[1]
    assert np.allclose(plain, long, atol=1e-6), "texts that are not long enough stay"


def test_tokens_and_embeddings_are_changed_too(pairs: Path) -> None:
    plain = changed(pairs, "fusion", sets=("aug.fusion.epsilon=1",))
    assert np.allclose(plain[0], plain[1], atol=1e-6), "all of its own embeddings"
    for names, sets in (
        (("fusion",), ("aug.fusion.epsilon=0.3",)),
        (("fusion",), ("aug.fusion.epsilon=0.3", "aug.fusion.at=word_embeddings")),
        (("token-shuffle",), ()),
        (("word-repetition", "feature-cutoff"), ("aug.feature-cutoff.rate=0.5",)),
    ):
        plain, other, _, _ = changed(pairs, *names, sets=sets)
        assert not np.allclose(plain, other, atol=1e-3), names


def test_fusion_meets_each_sentences_own_translation(pairs: Path) -> None:
    """Of ``epsilon = 0`` at the words, without special tokens, the translation alone is left."""
    sets = ("aug.fusion.epsilon=0", "aug.fusion.at=word_embeddings")
    _, other, model, _ = changed(pairs, "fusion", sets=sets)
    read = read_pairs(pairs)
    tokenizer = model.sentence_encoder.tokenizer
    lengths = [
        [len(tokenizer.content([text]).ids) for text in both]
        for both in zip([pair.sentence2 for pair in read.pairs], [*OTHER, OTHER[0]], strict=True)
    ]
    equal = [place for place, (one, two) in enumerate(lengths) if one == two]
    alone = model.encode([[*OTHER, OTHER[0]][place] for place in equal])
    assert np.allclose(other[equal], alone, atol=1e-5)
    assert np.array_equal(other[0], other[5]), "a sentence that comes twice is changed once"


def test_dropout_makes_an_identical_twin(pairs: Path) -> None:
    plain, other, _, encode = changed(pairs, dropout=True)
    assert not np.allclose(plain, other, atol=1e-3)
    assert np.array_equal(other, changed(pairs, dropout=True)[1])
    read = read_pairs(pairs)
    first, second = encode.pair_vectors(read)
    assert np.allclose(first, encode.unit([pair.sentence1 for pair in read.pairs]))
    assert np.allclose(second * np.linalg.norm(other, axis=1, keepdims=True), other, atol=1e-5)


def test_every_block_has_its_rows(pairs: Path) -> None:
    """More texts than are changed together; an augmenter that changes nothing leaves all."""
    plugins = installed_registry()
    model = load(str(shared_encoder()), plugins)
    texts = [f"anna paints boat {number}" for number in range(2 * ROWS + 3)]
    changer = Changer(model, [], {}, dropout=False, seed=0, resolve_model=str)
    assert np.allclose(changer(texts), model.encode(texts), atol=1e-5)


def test_the_command_scores_changed_pairs(cse: Cse, pairs: Path, tmp_path: Path) -> None:
    encoder = str(tiny_encoder(tmp_path / "model", seed=1))
    base = ("eval", encoder, "--pairs", str(pairs), "--json")
    plain = json.loads(cse(*base).out)["results"]["pairs"]
    fused = ("--aug", "fusion", "--set", "aug.fusion.epsilon=0.2")
    said = json.loads(cse(*base, *fused, "--metric", "mutual-information").out)["results"]["pairs"]
    assert said["setting"] == "all, second sentences changed by aug.fusion"
    assert plain["setting"] == "all" and said["spearman"] != plain["spearman"]
    assert "tfidf" in plain and "tfidf" not in said, "words alone know nothing of the change"
    numbers = {key.rpartition(".")[2]: value for key, value in said["metrics"].items()}
    assert numbers["fraternal_n"] == numbers["identical_n"] == 5
    assert numbers["fraternal"] < numbers["identical"]
    both = json.loads(cse(*base, "--aug", "token-shuffle", "--dropout").out)["results"]["pairs"]
    assert both["setting"].endswith("changed by aug.token-shuffle and dropout")


def test_a_run_has_its_own_options(cse: Cse, pairs: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    tiny_encoder(run / "model", seed=1)
    (run / "run.toml").write_text('[[aug]]\nuse = "cse-ifcl/fusion"\nepsilon = 1.0\n')
    base = ("eval", str(run), "--pairs", str(pairs), "--json")
    plain, own, other = (
        json.loads(cse(*base, *more).out)["results"]["pairs"]["spearman"]
        for more in ((), ("--aug", "fusion"), ("--aug", "fusion", "--set", "aug.fusion.epsilon=0"))
    )
    assert plain == own != other


def test_what_cannot_be_changed_is_refused(cse: Cse, pairs: Path, tmp_path: Path) -> None:
    base = ("eval", str(shared_encoder()), "--pairs", str(pairs))
    refused(cse(*base, "--aug", "fgsm"), "needs the gradient of an objective")
    refused(cse(*base, "--aug", "fusoin"), "fusion")
    refused(cse(*base, "--aug", "fusion", "--set", "aug.fusion.epsilom=1"), "epsilon")
    refused(cse(*base, "--set", "aug.fusion.epsilon=1"), "name it with --aug")
    refused(cse(*base, "--aug", "fusion", "--set", "epsilon=1"), "is not aug.NAME.OPTION=VALUE")
    refused(cse(*base, "--aug", "synonym"), "has no synonyms")
    plain = tmp_path / "plain.tsv"
    rows = [f"{i}\t{a}\t{a} too" for i, a in enumerate(FIRST)]
    plain.write_text("\n".join(["score\tsentence1\tsentence2", *rows]) + "\n", encoding="utf-8")
    refused(cse("eval", str(shared_encoder()), "--pairs", str(plain), "--aug", "fusion"),
            "has no column 'fraternal'")  # fmt: skip


def test_sets_of_the_class_are_its_own() -> None:
    """Texts that are no second sentence go through the changer as they come."""
    seen: list[list[str]] = []

    def other(texts: Any) -> np.ndarray:
        seen.append(list(texts))
        return np.ones((len(texts), 2), dtype=np.float32)

    encode = ChangedTexts(lambda texts: np.zeros((len(texts), 2), np.float32), [], other)
    assert encode.changed(["a"]).tolist() == [[1.0, 1.0]] and seen == [["a"]]

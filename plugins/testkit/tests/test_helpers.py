"""The kit's own tools: encoders, corpora, batches, runs, comparisons."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_testkit import (
    Rig,
    compose,
    installed_registry,
    make_batch,
    make_context,
    make_part,
    make_setup,
    run_steps,
    tiny_corpus,
    tiny_encoder,
    train_together,
)
from cse_testkit.completion import complete
from cse_testkit.doors import behind_the_doors
from cse_testkit.watching import difference, same, snapshot
from transformers import AutoModel, AutoTokenizer

from cse import Session
from cse_core.errors import CseError
from cse_core.options import LossOptions
from cse_core.records import Kind
from cse_defaults.transformers.encoder import PackedEncoder
from cse_engine.compose.models import Models
from cse_engine.step import negatives as core
from plugins.testkit.tests.wrong_parts import made_registry

FAMILIES = ["bert", "roberta", "electra", "distilbert", "mpnet"]


# Encoders


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tiny_encoder_is_a_real_one(family: Any, tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny", family=family)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder)
    batch = tokenizer(["Anna paints the boat.", "x"], padding=True, return_tensors="pt")
    batch.pop("token_type_ids", None)
    assert model(**batch).last_hidden_state.shape[-1] == 32
    facts = Models(installed_registry()).look(str(folder))[0]
    assert (facts.family, facts.hidden, facts.positions) == (family, 32, 512)
    assert (facts.cased, facts.mask_token) == (False, True)
    encoder = PackedEncoder.load(folder, seed=0)
    assert encoder.max_positions == 512
    assert encoder.packed == (family != "mpnet")
    assert encoder.embedding_size == (16 if family == "electra" else 32)
    assert all(np.isfinite(run_steps(encoder=folder, steps=2).losses))


def test_what_a_run_does_to_its_encoder_no_other_run_sees(tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny")
    made = compose(encoder=folder, kinds={"branch": ["+ema"]}, sets=["model.dropout=0.1"])
    own = Session(made)  # which reads the folder, as no other run of this test does
    first, second = Rig(made), Rig(made)
    encoder, tokenizer = first.session.encoder(), first.session.tokenizer()
    first.step(2)
    with torch.no_grad():
        for tensor in (*encoder.parameters(), *encoder.buffers()):
            tensor.fill_(3)
    for module in encoder.modules():
        module.register_forward_hook(lambda *_: 1 / 0)
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.9
    encoder.requires_grad_(False)
    encoder.model.config.hidden_size = 1
    tokenizer.hf.add_tokens(["boat boat"])
    tokenizer.hf.backend_tokenizer.normalizer = None
    with own:
        weights = snapshot(dict(own.encoder().state_dict()))
        config, vocabulary = own.encoder().model.config.to_dict(), own.tokenizer().hf.get_vocab()
        losses = tuple(float(own.step().loss) for _ in range(3))
        trained = snapshot(own.trained)
    for rig in (second, Rig(made)):
        same("another encoder", snapshot(dict(rig.session.encoder().state_dict())), weights)
        assert rig.session.encoder().model.config.to_dict() == config
        assert rig.session.tokenizer().hf.get_vocab() == vocabulary
        rig.step(3)
        assert rig.losses == losses
        same("other weights after three steps", snapshot(rig.session.trained), trained)


def test_an_encoder_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny")
    before = Rig(compose(encoder=folder)).weights()
    tiny_encoder(folder, seed=1)
    after = Rig(compose(encoder=folder)).weights()
    assert difference(snapshot(before), snapshot(after)) is not None


def test_no_word_of_the_corpus_is_unknown(tmp_path: Path) -> None:
    columns = ("positive", "negative", "fraternal", "title")
    for cased in (False, True):
        tokenizer = AutoTokenizer.from_pretrained(tiny_encoder(tmp_path / str(cased), cased=cased))
        corpus = tiny_corpus(columns=columns)
        for name in corpus.names:
            for text in corpus.column(name):
                assert tokenizer.unk_token_id not in tokenizer(text)["input_ids"], text
        same = tokenizer("Boat")["input_ids"] == tokenizer("boat")["input_ids"]
        assert same != cased


def test_equal_seeds_make_equal_encoders(tmp_path: Path) -> None:
    state = torch.get_rng_state()
    files = [
        (tiny_encoder(tmp_path / str(n), seed=seed) / "model.safetensors").read_bytes()
        for n, seed in enumerate((0, 0, 1))
    ]
    assert files[0] == files[1] != files[2]
    assert torch.equal(state, torch.get_rng_state())


# Corpora


def test_the_corpus_has_the_hard_rows(tmp_path: Path) -> None:
    corpus = tiny_corpus(columns=("positive", "document", "language"))
    texts = list(corpus.column("text"))
    assert corpus.names == ("text", "positive", "document", "language")
    assert texts[1] == "Boat" and texts[3] == texts[4]
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder(tmp_path))
    assert len(tokenizer(texts[2])["input_ids"]) > 32
    assert corpus.documents is not None and corpus.documents.tolist()[:5] == [0, 0, 0, 0, 1]
    assert texts == list(tiny_corpus().column("text"))


# Batches


def test_a_batch_of_given_vectors_holds_them() -> None:
    anchors, others = torch.eye(3), torch.ones(3, 3)
    batch = make_batch({"anchor": anchors, "positive": others}, documents=[0, 0, 1])
    assert batch.anchors is anchors
    assert torch.equal(batch.targets["positive"].vectors[:, 0], others)
    negatives = core.negatives_for_loss(batch, LossOptions(same_document="mask"), ())
    assert negatives.mask.tolist() == [
        [True, True, False],
        [True, True, False],
        [False, False, True],
    ]
    with pytest.raises(ValueError, match="anchor"):
        make_batch({"positive": others})


def test_a_context_gives_what_it_was_given() -> None:
    batch, log = make_batch(), {}
    ctx = make_context(batch, step=3, seed=1, texts={"text": ["a", "b"]}, log=log)
    assert ctx.replace(step=4).step == 4 and ctx.step == 3
    with pytest.raises(TypeError, match="a context has no uniforms"):
        make_context(uniforms=None)
    one, other = (torch.rand(3, generator=ctx.generator("x")) for _ in range(2))
    assert torch.equal(one, other)
    assert not torch.equal(one, torch.rand(3, generator=make_context(step=4).generator("x")))
    assert torch.equal(ctx.vectors("positive", "ema")["sentence"].vectors,
                       batch.views["positive"]["sentence"].vectors)  # fmt: skip
    with pytest.raises(KeyError):
        ctx.vectors("identical", "online")
    ctx.log("rate", 0.5)
    assert log == {"rate": 0.5} and ctx.texts("text") == ["a", "b"] and ctx.step == 3


def test_a_part_is_made_without_an_encoder() -> None:
    head = make_part("pool", "mlp", dimension=4, layers=2)
    assert head(torch.ones(2, 4, dtype=torch.float64)).shape == (2, 4)
    with pytest.raises(CseError, match="did you mean infonce"):
        make_part("loss", "infonec")
    setup = make_setup()
    teacher = setup.load_model("a-teacher", "cls")
    assert teacher.encoder.hidden_size == 48
    assert teacher.encode(["a boat", "b"]).shape == (2, 48)
    assert setup.load_model(None).encode(["a boat"]).shape == (1, 32)


# Runs


def test_run_steps_returns_losses_weights_and_state() -> None:
    run = run_steps({"negatives": ["+kept"]}, registry=made_registry(), steps=3)
    assert len(run.losses) == 3 and len(run.scalars) == 3
    assert run.scalars[0]["infonce.negatives"] == 3.0
    assert run.scalars[2]["infonce.negatives"] > 8
    assert run.session.parts["negatives.kept"].state_dict()["kept"].shape == (8, 32)
    assert any(name.startswith("encoder.") for name in run.weights())
    again = run_steps({"negatives": ["+kept"]}, registry=made_registry(), steps=3)
    assert run.losses == again.losses
    assert run.losses != run_steps(sets=["train.seed=1"], steps=3).losses


# Completion


def test_what_a_part_needs_is_added() -> None:
    needed = complete(installed_registry(), [("negatives", "hard-negatives")])
    assert list(needed.columns) == ["text", "negative"]
    assert needed.kinds["negatives"] == ["+hard-negatives"]
    needed = complete(made_registry(), [("positives", "neighbour"), ("pool", "halves")])
    assert needed.kinds["loss"] == ["infonce", "+infonce:on-neighbours", "+infonce:at-segment"]
    assert needed.kinds["pool"] == ["cls", "+halves", "+mlp"]
    assert complete(installed_registry(), [("branch", "ema")]).sets == ["views.positive.branch=ema"]


def test_a_head_beside_several_vectors_of_another_dimension_takes_those_of_rows() -> None:
    needed = complete(made_registry(), [("pool", "short")])
    assert needed.kinds["pool"] == ["cls", "+short", "+mlp"]
    assert "pool.mlp.level=row" in needed.sets
    assert train_together([made_registry().find("pool", "short")], made_registry()) > 0
    assert "pool.mlp.level=row" not in complete(made_registry(), [("pool", "halves")]).sets


def test_options_reach_the_composition() -> None:
    options = {("negatives", "hard-negatives"): {"column": "opposite", "weight": 0.5}}
    needed = complete(installed_registry(), list(options), options)  # type: ignore[arg-type]
    assert list(needed.columns) == ["text", "opposite"]
    made = compose(kinds=needed.kinds, sets=needed.sets, corpus=tiny_corpus(columns=needed.columns))
    assert made.of("negatives")[0].options.model_dump()["weight"] == 0.5


# Pairs


def test_a_pair_trains_is_refused_or_is_an_error() -> None:
    registry = made_registry()

    def together(*named: tuple[Kind, str]) -> float:
        return train_together([registry.find(*each) for each in named], registry)

    assert together(("aug", "repeat"), ("negatives", "kept")) > 0
    assert together(("positives", "pairs"), ("pool", "halves")) > 0
    with pytest.raises(CseError, match="one row pooler"):
        together(("pool", "cls"), ("pool", "mean"))
    with pytest.raises(
        ArithmeticError, match="loss.nan-loss with branch.ema: the loss of step 1 is nan"
    ):
        together(("loss", "nan-loss"), ("branch", "ema"))


# Comparisons


@dataclass
class Holder:
    tensor: torch.Tensor
    table: dict[str, Any]


def test_snapshots_tell_what_changed() -> None:
    held = Holder(torch.zeros(2), {"a": [1, np.arange(3)], "draws": torch.Generator()})
    before = snapshot(held)
    assert difference(before, snapshot(held)) is None
    held.table["a"][1][0] = 5
    assert difference(before, snapshot(held)) == "table.a.1"
    before = snapshot(held)
    held.tensor += 1
    assert difference(before, snapshot(held)) == "tensor"
    before = snapshot(held)
    torch.rand(1, generator=held.table["draws"])
    assert difference(before, snapshot(held)) == "table.draws"
    before = snapshot(held)
    held.table["new"] = 1
    assert difference(before, snapshot(held)) == "table.new"
    nan = torch.tensor([float("nan")])
    assert difference(snapshot(nan), snapshot(nan.clone())) is None


def test_snapshots_take_what_refers_to_itself() -> None:
    held = Holder(torch.zeros(1), {})
    held.table["self"] = held
    assert difference(snapshot(held), snapshot(held)) is None


def test_a_door_is_open_however_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cse_doors_tried").mkdir()
    (tmp_path / "cse_doors_tried/__init__.py").write_text(
        "from cse import questions, train\nfrom cse_cli import api\nfrom cse_core import parts\n"
        "from cse_core import registry\nfrom cse import runs\nfrom cse_cli.main import run\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    behind = ["cse_core.registry", "cse.runs", "cse_cli.main"]
    assert [*behind_the_doors("cse_doors_tried")] == behind

"""Kinds of model folders: cse's vectors are sentence-transformers', or it says why not.

Before and after a training that changes no weight. What is compared is computed here, by the
sentence-transformers that is installed.
"""

import json
import logging
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_testkit.tiny import WORDS, shared_encoder
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import cse
from cse_cli.training.resolving import with_absolute_paths

st = pytest.importorskip("sentence_transformers", reason="its vectors are what is compared")
modules = pytest.importorskip("sentence_transformers.models")

TEXTS = [
    "the old LAMP near the garden",
    "a kite",
    "Anna paints the boat, and then Ben sells the old clock in the market near the station.",
]
WITHOUT = {"train.lr": 0.0, "train.max_steps": 1, "train.batch_size": 4, "train.precision": "fp32"}
Maker = Callable[[Path], object]


def saved(
    *layers: torch.nn.Module, base: Path | None = None, length: int = 16, **settings: Any
) -> Maker:

    def save(folder: Path) -> None:
        first = modules.Transformer(str(base or shared_encoder()))
        first.max_seq_length = length
        made = st.SentenceTransformer(modules=[first, *layers], device="cpu", **settings)
        made.save(str(folder), create_model_card=False)

    return save


def changed(make: Maker, file: str, **values: object) -> Maker:

    def change(folder: Path) -> None:
        make(folder)
        held = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
        (folder / file).write_text(json.dumps({**held, **values}))

    return change


def replaced(folder: Path, file: str, pattern: str, text: str) -> None:
    saved(pooling())(folder)
    (folder / file).write_text(re.sub(pattern, text, (folder / file).read_text()))


def plain(folder: Path, cased: bool = False) -> None:
    shutil.copytree(shared_encoder(cased), folder)


def dense(size: int = 8, function: str = "Tanh", **options: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    return modules.Dense(32, size, activation_function=getattr(torch.nn, function)(), **options)


def pooling(mode: str = "mean", **options: Any) -> torch.nn.Module:
    return modules.Pooling(32, mode, **options)


def byte_level(folder: Path) -> None:
    """Save an encoder whose tokenizer reads a prompt otherwise alone than before a text."""
    plain(folder)
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator([" ".join(WORDS)] * 9, trainer)
    made.save(str(folder / "tokenizer.json"))
    encoder = modules.Transformer(str(shared_encoder())).auto_model
    encoder.resize_token_embeddings(made.get_vocab_size())
    encoder.save_pretrained(folder)


def with_byte_level(folder: Path) -> None:
    byte_level(folder.with_name("base"))
    base = folder.with_name("base")
    saved(pooling(), base=base, prompts={"q": "find the:"}, default_prompt_name="q")(folder)


def in_shards(folder: Path) -> None:
    plain(folder)
    encoder = modules.Transformer(str(folder)).auto_model
    (folder / "model.safetensors").unlink()
    encoder.save_pretrained(folder, max_shard_size="20KB")
    assert (folder / "model.safetensors.index.json").exists()


def as_before_version_3(folder: Path) -> None:
    """Save one as older versions did: the encoder in a folder, a flag for each mode of pooling."""
    plain(folder / "0_Transformer")
    (folder / "1_Pooling").mkdir()
    kinds = {"0_Transformer": "Transformer", "1_Pooling": "Pooling"}
    held = [{"path": path, "type": f"sentence_transformers.models.{k}", "idx": n, "name": str(n)}
            for n, (path, k) in enumerate(kinds.items())]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(held))
    flags = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    write = {"word_embedding_dimension": 32, **flags}
    (folder / "1_Pooling/config.json").write_text(json.dumps(write))
    limits = {"max_seq_length": 12, "do_lower_case": False}
    (folder / "0_Transformer/sentence_bert_config.json").write_text(json.dumps(limits))


def of_cse(folder: Path, **chosen: Any) -> None:
    run = folder.with_name("trained")
    options = {**WITHOUT, "train.lr": 1e-3, **chosen.pop("options", {})}
    data = texts_of(folder.parent)
    trained = cse.train(model=shared_encoder(), data=data, dev="none", out=run, options=options,
                        **chosen)  # fmt: skip
    shutil.copytree(trained.model, folder)


def over_one_of_cse(folder: Path) -> None:
    """Let sentence-transformers save another pooling over a model of cse."""
    of_cse(folder)
    (folder / "checksums.json").unlink()
    saved(pooling("cls"), base=folder)(folder)


def adapter(folder: Path, *, beside: bool) -> None:
    peft = pytest.importorskip("peft")
    if beside:
        plain(folder)
    config = peft.LoraConfig(r=2, target_modules=["query"])
    encoder = modules.Transformer(str(shared_encoder())).auto_model
    peft.get_peft_model(encoder, config).save_pretrained(folder.with_name("adapter"))
    shutil.copytree(folder.with_name("adapter"), folder, dirs_exist_ok=True)


def pickled_shards(folder: Path) -> None:
    plain(folder)
    held = load_file(folder / "model.safetensors")
    torch.save(held, folder / "weights.bin")
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": dict.fromkeys(held, "weights.bin")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def a_pipe(folder: Path) -> None:
    saved(pooling(), dense())(folder)
    (folder / "2_Dense/model.safetensors").unlink()
    os.mkfifo(folder / "2_Dense/model.safetensors")


def transformer(name: str, **sizes: Any) -> Maker:
    def save(folder: Path) -> None:
        import transformers

        plain(folder)
        model = getattr(transformers, name)
        vocabulary = len(modules.Transformer(str(folder)).tokenizer)
        model(model.config_class(vocab_size=vocabulary, **sizes)).save_pretrained(folder)

    return save


FOLDERS: dict[str, Maker] = {
    "plain": plain,
    "plain with a tokenizer's length": changed(plain, "tokenizer_config.json", model_max_length=9),
    "in shards": in_shards,
    "mean": saved(pooling()),
    "cls": saved(pooling("cls")),
    "as older versions saved": as_before_version_3,
    "Normalize": saved(pooling(), modules.Normalize()),
    "Dense": saved(pooling(), dense()),
    "Dense without bias": saved(pooling(), dense(bias=False)),
    **{f"Dense, {name}": saved(pooling(), dense(function=name))
       for name in ("Identity", "ReLU", "GELU", "Sigmoid", "SiLU", "ELU", "LeakyReLU", "Softplus")},
    "Dense, Dropout, Normalize": saved(
        pooling("cls"), modules.Dropout(0.5), dense(), modules.Dense(8, 6),
        modules.Normalize(),
    ),
    "prompts without a default": saved(pooling(), prompts={"query": "the old "}),
    "a default prompt": saved(
        pooling(), prompts={"query": "the old ", "d": ""}, default_prompt_name="query"
    ),
    "a prompt of bytes": with_byte_level,
    "a prompt that is not pooled": saved(
        pooling(include_prompt=False), prompts={"q": "the old "}, default_prompt_name="q"
    ),
    "cut on the left": changed(
        saved(pooling(), length=9, prompts={"q": "the old "}, default_prompt_name="q"),
        "tokenizer_config.json", truncation_side="left",
    ),
    "a prompt that is not pooled, unused": saved(pooling(include_prompt=False)),
    "last token": saved(pooling("lasttoken")),
    "truncate_dim": saved(pooling(), modules.Normalize(), truncate_dim=5),
    "similarity dot": saved(pooling(), similarity_fn_name="dot"),
    "arguments without effect": changed(
        saved(pooling()), "sentence_bert_config.json",
        model_args={"add_pooling_layer": False, "torch_dtype": "float32"},
        processing_kwargs={"text": {"padding": True}},
    ),
    "cased": saved(pooling(), base=shared_encoder(True)),
    "cased with do_lower_case": changed(
        saved(pooling(), base=shared_encoder(True)), "sentence_bert_config.json", do_lower_case=True
    ),
    "of cse": of_cse,
    "of cse with a head": lambda folder: of_cse(folder, options={"pool.mlp.keep": "always"}),
    "of cse with an adapter": lambda folder: of_cse(folder, adapter="lora"),
    "sentence-transformers over cse": over_one_of_cse,
}  # fmt: skip
"""Folders that both read."""
DECLARED = "config_sentence_transformers.json"
REFUSED: dict[str, tuple[Maker, str]] = {
    "max pooling": (saved(pooling("max")), "pools its tokens by max, which cse does not have"),
    "two poolings": (saved(pooling(("cls", "mean"))), "pools its tokens by cls and mean"),
    "a prompt that is not pooled": (
        saved(pooling("cls", include_prompt=False), prompts={"q": "a"}, default_prompt_name="q"),
        "leaves out the tokens of the prompt",
    ),
    "Normalize before Dense": (saved(pooling(), modules.Normalize(), dense()), "before its last"),
    "a residual Dense": (saved(pooling(), dense(use_residual=True)), "use_residual True"),
    "a Dense of another function": (
        saved(pooling(), dense(function="Softsign")), "a function that .*Softsign"
    ),
    "LayerNorm": (saved(pooling(), modules.LayerNorm(32)), "names a module that .*LayerNorm"),
    "a class of its own": (
        lambda f: replaced(f, "modules.json", r"sentence_transformers[\w.]*Pooling", "my.Pooling"),
        "needs code of its own, .*my.Pooling.*trust_remote_code",
    ),
    **{
        f"{key} of its own": (
            changed(saved(pooling()), "sentence_bert_config.json", **{key: given}), why
        )
        for key, given, why in (
            ("config_args", {"num_hidden_layers": 1}, r"config_args.num_hidden_layers, .*got 1\)"),
            ("processing_kwargs", {"text": {"max_length": 5}}, "processing_kwargs.max_length"),
            ("query_length", 5, "says query_length, which"),
        )
    },
    "a sparse encoder": (
        changed(saved(pooling()), DECLARED, model_type="SparseEncoder"),
        "model_type 'SparseEncoder', which cse does not have",
    ),
    "an adapter alone": (lambda f: adapter(f, beside=False), "only a peft adapter.*merge it"),
    "an adapter beside weights": (
        lambda f: adapter(f, beside=True), "whole weights and an adapter of peft"
    ),
    "a path out of the folder": (
        lambda f: replaced(f, "modules.json", '"1_Pooling"', '"../elsewhere"'),
        "names a folder elsewhere",
    ),
    "pickled shards": (pickled_shards, "names weights.bin, which is not a safetensors file"),
    "more layers than weights": (
        changed(plain, "config.json", num_hidden_layers=99),
        "num_hidden_layers = 99, and the weights",
    ),
    "layers without end": (
        changed(plain, "config.json", num_hidden_layers=10**7), "must be an integer from 1 to 1,000"
    ),
    "more words than weights": (
        changed(plain, "config.json", vocab_size=10**7), "vocab_size = 10,000,000, and the weights"
    ),
    "a pipe": (a_pipe, "is not a regular file"),
    "a similarity of its own": (
        changed(saved(pooling()), DECLARED, similarity_fn_name="hamming"),
        "similarity_fn_name 'hamming', which cse does not have",
    ),
    "T5": (
        transformer("T5EncoderModel", d_model=32, d_ff=32, num_layers=1, num_heads=2),
        "of the family t5, which cse does not load: T5EncoderModel",
    ),
    "XLNet": (transformer("XLNetModel", d_model=32, n_layer=1, n_head=2, d_inner=32), "XLNetModel"),
}  # fmt: skip
"""Folders that cse does not load, and what it says."""


def texts_of(folder: Path) -> Path:
    file = folder / "texts.txt"
    file.write_text("".join(f"{word} near the old {other}\n" for word in WORDS for other in "ab"))
    return file


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    torch.set_num_threads(1)


def theirs(folder: Path) -> NDArray[np.float32]:
    found: NDArray[np.float32] = st.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    return found


def same(one: NDArray[np.float32], other: NDArray[np.float32], what: str) -> None:
    assert one.shape == other.shape, what
    np.testing.assert_allclose(one, other, atol=1e-5, rtol=0, err_msg=what)


def check(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    FOLDERS[name](folder)
    wanted = theirs(folder)
    assert float(wanted.std(axis=0).mean()) > 1e-4, "the texts differ"
    same(cse.load(folder).encode(TEXTS), wanted, "as it was")
    run = cse.train(model=folder, data=texts_of(tmp_path), dev="none", pool="model",
                    out=tmp_path / "run", options=WITHOUT)  # fmt: skip
    same(run.load().encode(TEXTS), wanted, "after training")
    same(theirs(run.model), wanted, "after training, by sentence-transformers")


FAST = (
    "cut on the left",
    "Dense, Dropout, Normalize",
    "a prompt that is not pooled",
    "a prompt of bytes",
    "sentence-transformers over cse",
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in FOLDERS]
)
def test_vectors_are_those_of_sentence_transformers(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


def test_search_compares_as_the_folder_says(tmp_path: Path) -> None:
    for kind in ("cosine", "dot", "euclidean", "manhattan"):
        folder = tmp_path / kind
        saved(pooling(), similarity_fn_name=kind)(folder)
        other = st.SentenceTransformer(str(folder), device="cpu")
        scores = other.similarity(other.encode(TEXTS[:1]), other.encode(TEXTS))[0]
        (found,) = cse.load(folder).search(TEXTS[0], TEXTS, top=len(TEXTS))
        assert found["similarity"] == kind
        for hit in found["results"]:
            assert hit["score"] == pytest.approx(float(scores[hit["row"] - 1]), abs=1e-3), kind
        ranked = [hit["score"] for hit in found["results"]]
        assert ranked == sorted(ranked, reverse=True) and len(ranked) > 1


@pytest.mark.parametrize("inside", ["", "0_Transformer"])
def test_the_length_is_the_saved_one(inside: str, tmp_path: Path) -> None:
    """That of the tokenizer, or of a file of older versions, which counts first."""
    folder, older = tmp_path / "model", Path(inside, "sentence_bert_config.json")
    make = as_before_version_3 if inside else saved(pooling())
    make(folder)
    (folder / older).unlink(missing_ok=True)
    lengths, vectors = [], []
    for file, values in (
        (Path(inside, "tokenizer_config.json"), {"model_max_length": 9}),
        (older, {"max_seq_length": 5}),
        (older, {"max_seq_length": 100_000}),
    ):
        changed(lambda _: None, str(file), **values)(folder)
        model = cse.load(folder)
        lengths.append(model.max_length)
        vectors.append(model.encode(TEXTS[2:]))
    assert lengths == [9, 5, model.max_positions], "never longer than the encoder"
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)


@pytest.mark.parametrize("name", REFUSED)
def test_another_folder_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    make, why = REFUSED[name]
    folder = tmp_path / "model"
    make(folder)
    with pytest.raises(cse.CseError, match=why):
        cse.load(folder)


def test_a_second_model_encodes_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    teacher, data = tmp_path / "teacher", texts_of(tmp_path)
    saved(pooling(), dense(), modules.Normalize(), prompts={"q": "the old "}, length=20,
          default_prompt_name="q", truncate_dim=5)(teacher)  # fmt: skip
    store = {"use": "instance-weights", "branch": "frozen"}
    options = {**WITHOUT, "branch.frozen.model": "teacher", "model.max_length": 6,
               f"negatives.{store['use']}.branch": "frozen"}  # fmt: skip
    chosen: Any = {"model": shared_encoder(), "data": data, "dev": "none", "pool": "cls",
                   "branch": "+frozen", "negatives": store["use"], "options": options}  # fmt: skip
    plan = cse.plan(**chosen)
    assert "frozen (teacher): anchor" in str(plan)
    assert (
        "teacher encodes as it says itself: pool mean, 2_Dense; prompt 'the old '; "
        "max_length 20; normalize true; truncate_dim 5"
    ) in plan.composition.notes
    located = with_absolute_paths(plan.composition, plan.plugins.registry)
    with cse.Session(located, plugins=plan.plugins) as session:
        own = session._loop.assembly.encoders["frozen"]
        content = session._loop.rows.content("text", torch.arange(3), own.tokenizer)
        vectors = own.embed(own.rows(content, "anchor"), torch.device("cpu"), 3)["sentence"].vectors
    texts = data.read_text().splitlines()[:3]
    wanted = st.SentenceTransformer(str(teacher), device="cpu").encode(texts)
    same(vectors.detach().numpy(), wanted, "in a step")
    with pytest.raises(cse.CseError, match=r"^branch\.frozen\.model: .*no such folder"):
        cse.plan(**{**chosen, "options": {**options, "branch.frozen.model": "./none"}})


def test_what_a_run_changes_of_the_model_is_said(tmp_path: Path) -> None:
    folder, data = tmp_path / "model", texts_of(tmp_path)
    saved(pooling(), dense(), modules.Normalize(), prompts={"q": "the old "}, length=20,
          default_prompt_name="q")(folder)  # fmt: skip
    chosen: Any = {"model": folder, "data": data, "dev": "none", "recipe": "simcse"}
    plan = cse.plan(**chosen)
    assert (
        "pool is mean, 2_Dense in the model, and cls here: --pool model keeps it" in plan.warnings
    )
    kept = "as in the model: model.prompt 'the old '; inference.max_length 20; "
    assert f"{kept}inference.normalize true" in plan.composition.notes
    other = cse.plan(**chosen, prompt="a kite ", options={"inference.normalize": False})
    said = "\n".join(other.warnings)
    assert "model.prompt is 'the old ' in the model, and 'a kite ' here" in said
    assert "inference.normalize is true in the model, and false here" in said
    for given in ({"prompt": "k"}, {"options": {"views.anchor.prompt": "k"}}):
        with pytest.raises(cse.CseError, match=r"\.prompt: .*none of .*'k'.*; known: .*q"):
            cse.plan(**chosen, **given)
    with pytest.raises(cse.CseError, match="prompt: is none of the model's prompts .*write 'q: '"):
        cse.load(shared_encoder(), prompt="q")
    run = cse.train(model=folder, data=data, dev="none", prompt="a kite ", out=tmp_path / "run",
                    options={**WITHOUT, "inference.normalize": False})  # fmt: skip
    assert run.load().description == "pooling mean, head 2_Dense, prompt 'a kite '"
    prompts = json.loads((run.model / "config_sentence_transformers.json").read_text())
    assert prompts["prompts"][prompts["default_prompt_name"]] == "a kite "
    same(theirs(run.model), run.load().encode(TEXTS), "with another prompt, not normalised")
    again = cse.plan(run.folder).composition
    assert (again.model.prompt, again.inference.normalize) == ("a kite ", False)

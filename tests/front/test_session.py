"""``cse.Session`` makes the steps of a run and keeps them, ``cse.open_run`` reads what it holds."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import shared_encoder, tiny_corpus
from safetensors.torch import load_file
from torch import Tensor

import cse
from tests.docs.pages import ROOT, Page

OPTIONS = {"train.batch_size": 4, "train.max_steps": 6, "train.log_steps": 1, "train.lr": 1e-3,
           "train.save_steps": 2, "train.precision": "fp32", "train.device": "cpu"}  # fmt: skip


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_once: None) -> dict[str, Any]:
    (tmp_path / "temporary").mkdir()
    model = shared_encoder()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(tiny_corpus(22).column("text")) + "\n", encoding="utf-8")
    return {"model": model, "data": file, "dev": "none", "negatives": "queue",
            "loss": "infonce", "options": OPTIONS}  # fmt: skip


def weights(run: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = load_file(run / "model/model.safetensors")
    return found


def equal(one: Path, other: Path) -> bool:
    there = weights(other)
    return all(torch.equal(value, there[name]) for name, value in weights(one).items())


def test_its_steps_are_those_of_a_run(chosen: dict[str, Any], tmp_path: Path) -> None:
    run = cse.train(out=tmp_path / "run", quiet=True, **chosen)
    losses = [line["loss"] for line in cse.open_run(run.folder).metrics if "loss" in line]
    with cse.Session(**chosen) as session:
        assert (session.done, session.total, session.round) == (0, 6, 0)
        assert (session.losses, str(session.device)) == (("infonce",), "cpu")
        assert list(session.corpus.column("text")) == list(tiny_corpus(22).column("text"))
        made = [float(session.step().loss) for _ in range(3)]
        session.checkpoint(tmp_path / "half")
        session.save(tmp_path / "half/model")
        made += [float(session.step(session.batch(number)).loss) for number in (3, 4, 5)]
        session.checkpoint(tmp_path / "whole")
        session.save(tmp_path / "whole/model")
        vectors = session.encode(["bada", "defe"])
    assert made == losses and equal(run.folder, tmp_path / "whole")
    assert not equal(run.folder, tmp_path / "half")
    assert torch.equal(torch.from_numpy(run.load(device="cpu").encode(["bada", "defe"])),
                       torch.from_numpy(vectors))  # fmt: skip
    with cse.Session(cse.open_run(tmp_path / "half")) as session:
        assert [float(session.step().loss) for _ in range(3)] == losses[3:]
        session.checkpoint(tmp_path / "again")
    assert cse.resume(tmp_path / "half", quiet=True).outcome.steps == 6
    assert equal(run.folder, tmp_path / "half")
    assert cse.open_run(tmp_path / "again").checkpoints == [(0, 0), (0, 6)]
    assert not list((tmp_path / "temporary").iterdir())


def test_a_step_is_watched(chosen: dict[str, Any]) -> None:
    calls: dict[tuple[str, str], tuple[Any, ...]] = {}
    seen: list[tuple[bool, bool]] = []
    with cse.Session(cse.plan(**chosen)) as session:
        session.watch(lambda part, method, given, came: calls.update({(part.path, method): given}))
        head: Any = session.parts["pool.mlp"]
        before = {name: value.clone() for name, value in head.state_dict().items()}

        def look() -> None:
            still = all(torch.equal(value, before[n]) for n, value in head.state_dict().items())
            seen.append((all(p.grad is not None for p in head.parameters()), still))

        session.before_update(look)
        step = session.step(torch.tensor([3, 1, 0, 2]))
        batch, targets, negatives, context = calls["loss.infonce", "__call__"]
        assert batch.rows.tolist() == [3, 1, 0, 2] and targets.vectors.shape[:2] == (4, 1)
        assert [name for name, _ in negatives.blocks] == ["in-batch", "queue"]
        assert context.step == 0
        assert ("negatives.queue", "after_step") in calls and seen == [(True, True)]
        assert any(not torch.equal(v, before[n]) for n, v in head.state_dict().items())
        assert [len(session.batch(number)) for number in range(7)] == [4, 4, 4, 4, 4, 2, 4]
        tokens = step.views["anchor"].tokens
        start, stop = tokens.offsets[:2].tolist()
        read = session.tokenizer().hf.convert_ids_to_tokens(tokens.ids[start + 1 : stop - 1])
        text = session.corpus.column("text")[3].lower().replace(" ", "")
        assert "".join(read).replace("##", "") == text
        session.watch(None)
        calls.clear()
        session.step()
        assert (calls, session.done) == ({}, 2)


def test_precisions_take_turns_over_the_same_weights(chosen: dict[str, Any]) -> None:
    with cse.Session(**chosen) as session:
        other = session.with_precision("bf16")
        one, vectors = session.step(), session.encode(["a boat"])
        two = other.step()
        assert (session.encode(["a boat"]) != vectors).any()
        assert (session.done, other.done) == (1, 1)
        assert one.tokens == two.tokens and float(one.loss) != float(two.loss)
        with pytest.raises(cse.CseError, match="no such precision"):
            session.with_precision("fp8")


def test_a_round_goes_along(tmp_path: Path) -> None:
    path = tmp_path / "articles.jsonl"
    texts = list(tiny_corpus(22).column("text"))
    with path.open("w") as out:
        for n in range(4):
            body = [["a", texts[4 * n : 4 * n + 4]]]
            out.write(json.dumps({"id": n, "title": f"t{n}", "sections": body}) + "\n")
    options = {**OPTIONS, "model.max_length": 24}
    with cse.Session("inverse-cloze", model=shared_encoder(), data=path, dev="none",
                     options=options) as session:  # fmt: skip
        assert session.round == 1 and session.rows.pairs is not None
        session.step()
        session.checkpoint(tmp_path / "run")
        after = float(session.step().loss)
    with cse.Session(cse.open_run(tmp_path / "run")) as session:
        assert (session.round, session.done) == (1, 1)
        assert float(session.step().loss) == after
    cse.resume(tmp_path / "run", quiet=True)


@pytest.mark.parametrize("recipe", ["mlm", "tsdae", "diffcse", "infocse-wu"])
def test_the_plan_knows_how_many_weights_a_loss_trains(recipe: str, chosen: dict[str, Any]) -> None:
    given = {name: chosen[name] for name in ("model", "data", "dev")}
    options = {"loss.replaced-tokens.generator": "self"} if recipe == "diffcse" else {}
    plan = cse.plan(recipe, **given, options=options)
    ((path, count),) = plan.to_dict()["own_weights"].items()
    assert f"{path} trains {count:,} parameters of its own, which are not saved" in str(plan)
    with cse.Session(plan) as session:
        session.prepare()
        encoder = {id(each) for each in session.encoder().parameters()}
        part: Any = session.parts[path]
        own = [each for each in part.parameters() if each.requires_grad and id(each) not in encoder]
        assert sum(map(torch.numel, own)) == count > 0


def test_mistakes(chosen: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = cse.plan(**chosen)
    for words, make in (
        ("a plan is trained as it is; seed cannot", lambda: cse.Session(plan, seed=3)),
        ("twinz", lambda: cse.Session(**{**chosen, "loss": "twinz"})),
        ("holds other things", lambda: cse.Session(plan).checkpoint(tmp_path)),
    ):
        with pytest.raises(cse.CseError, match=words):
            make()
    with cse.Session(plan) as session:
        session.checkpoint(tmp_path / "run")
    with pytest.raises(cse.CseError, match="cse.Session: is closed"):
        session.step()
    with pytest.raises(cse.CseError, match="a run is trained as it is; loss cannot"):
        cse.Session(cse.open_run(tmp_path / "run"), loss="twins")
    chosen["data"].write_text("another text\n" * 9, encoding="utf-8")
    with pytest.raises(cse.CseError, match="the data has changed since this run"):
        cse.Session(cse.open_run(tmp_path / "run")).prepare()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(cse.CseError, match="RANK: is not set, but WORLD_SIZE is"):
        cse.Session(plan)


def test_the_example_of_the_page_runs(chosen: dict[str, Any], monkeypatch: Any) -> None:
    monkeypatch.chdir(chosen["data"].parent)
    (block,) = Page(ROOT / "docs/python.md").blocks("A run in steps")
    names: dict[str, Any] = {"cse": cse}
    exec(block.text, names)
    assert names["vectors"].shape == (1, 256) and tempfile.gettempdir()
    assert cse.open_run("runs/steps").checkpoints == [(0, 0), (0, 1)]


def test_a_run_is_read(tmp_path: Path) -> None:
    texts = list(tiny_corpus().column("text"))
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    options = {"train.batch_size": 4, "train.max_steps": 3, "train.save_steps": 2}
    made = cse.train(
        model=str(shared_encoder()), data=file, dev="none", negatives="queue", loss="infonce",
        options=options, out=tmp_path / "run", quiet=True,
    )  # fmt: skip
    run = cse.open_run(made.folder)
    assert [part.path for part in run.composition.of("negatives")] == ["negatives.queue"]
    assert list(run.corpus.column("text")) == texts
    assert run.rounds == {} and run.result is not None
    assert run.result["step"] == made.outcome.step
    assert [line["step"] for line in run.metrics if "loss" in line][-1] == 3
    assert run.checkpoints[-1] == (0, 3) and (0, 2) in run.checkpoints
    states = (run.state("negatives.queue", step=2), run.state("negatives.queue"))
    early, late = (state["vectors"][state["row"] >= 0] for state in states)  # the rest are a draw
    assert (len(early), len(late)) == (8, 12)
    assert any(torch.equal(part, early) for part in (late[:8], late[4:]))
    refused = {"pool.none": None, "negatives.queue": 9}
    for part, step in refused.items():
        with pytest.raises(cse.CseError, match="no state|no checkpoint of this step .* 2, 3"):
            run.state(part, step)
    file.write_text("\n".join(reversed(texts)) + "\n", encoding="utf-8")
    with pytest.raises(cse.CseError, match="the data has changed since this run"):
        cse.open_run(made.folder).corpus  # noqa: B018
    with pytest.raises(cse.CseError, match="is not a run: it has no run.toml"):
        cse.open_run(tmp_path)

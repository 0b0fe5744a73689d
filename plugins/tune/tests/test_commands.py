"""``cse tune`` and ``cse choose`` through the real entry point."""

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cse_tune import choosing
from cse_tune.texts import split_texts
from cse_tune.tuning import tune

from cse import load
from cse_cli.api import Installed
from cse_core.errors import CseError
from cse_core.files import lock_folder
from tests.fixtures.command_line import Cse
from tests.fixtures.tiny import WORDS, make_encoder
from tests.fixtures.titled import notes, nothing_to_learn, pieces

SPACE = """
[settings]
pool = ["model"]
"train.batch_size" = 16

[[axes]]
name = "method"

[[axes.places]]
label = "titles"
recipe = "simcse"
"views.anchor.column" = "title"
"views.positive.column" = "text"
"train.lr" = 3e-3

[[axes.places]]
label = "adapt"
recipe = "adapt"
"train.select_start" = false
"train.merge" = []
"train.chunk_size" = "none"

[[axes.places]]
label = "graded"
recipe = "cosent"
"""


def space(folder: Path, text: str = SPACE) -> str:
    (folder / "space.toml").write_text(text)
    return str(folder / "space.toml")


def test_documents_that_judge_neither_train_nor_race(tmp_path: Path) -> None:
    docs = notes(tmp_path / "docs", 200)
    split = split_texts([str(docs)], Installed())
    trained = {*split.trained.column("text")}
    racing, judging = ({text for _, text in part.asked} for part in (split.race, split.judge))
    assert len(racing) == 14 and len(judging) == 26 and not racing & judging
    for part, other in ((split.race, judging), (split.judge, racing)):
        own = {part.texts[at] for at, owner in enumerate(part.owners) if owner >= 0}
        assert len(own) == len(part.asked) and not own & trained
        assert {title for _, title in part.asked}.isdisjoint(other)
    judged = {text for text, owner in zip(split.judge.texts, split.judge.owners, strict=True)
              if owner >= 0}  # fmt: skip
    assert judged.isdisjoint(split.race.texts), "nor does it stand beside those that race"
    again = split_texts([str(docs)], Installed())
    assert (again.race, again.judge) == (split.race, split.judge)


@pytest.mark.slow
def test_a_race_ends_with_a_verdict_and_goes_on_where_it_stopped(cse: Cse, tmp_path: Path) -> None:
    encoder, docs = make_encoder(tmp_path / "tiny"), notes(tmp_path / "docs", 160)
    words = ("tune", str(docs), "--model", encoder, "--space", space(tmp_path), "--seeds", "2",
             "--steps", "9", "--minutes", "30", "--out", str(tmp_path / "out"))  # fmt: skip
    plan = cse(*words, "--dry-run")
    assert plan.code == 0 and "titles that race: 11 among" in plan.out, plan.err
    assert "3. graded: left out:" in plan.out and not (tmp_path / "out").exists()
    done = cse(*words, "--json")
    result = json.loads(done.out)
    assert done.code == 0 and result["steps"] == 9, done.err
    assert {row["label"] for row in result["race"]} == {"titles", "adapt"}
    assert [steps for steps, _ in result["race"][0]["scores"]][0] == 1
    assert result["winner"] in ("titles", "adapt") and [*result["refused"]] == ["graded"]
    assert result["verdict"].split(":")[0] in ("better", "no better")
    folder = tmp_path / "out"
    assert (folder / "model").is_dir() == result["better"]
    assert len([*(folder / "studies" / "runs").glob("*.toml")]) < 14
    runs = {file: file.stat().st_mtime_ns for file in (folder / "studies").rglob("*.json")}
    state = json.loads((folder / "tune.json").read_text())
    del state["result"]
    (folder / "tune.json").write_text(json.dumps(state))
    again = cse(*words)
    assert again.code == 0 and result["verdict"] in again.out, again.err
    assert {file: file.stat().st_mtime_ns for file in runs} == runs, "nothing is made again"
    third = cse(*words, "--seeds", "3")
    assert third.code == 2 and "has a race with other seeds" in third.err
    recipe = (folder / "recipe.toml").read_text()
    assert "[train]" in recipe and "max_steps = 9" in recipe


class MadeUp:
    """Stands for the study: each point has gains of its own, which rise with the steps.

    ``fails`` has the study, point and steps of what fails; those of a point's steps are any.
    """

    def __init__(
        self, real: Callable[..., Any], encoder: str, worth: Mapping[int, float],
        fails: Collection[tuple[str, int, int | None]] = (("space", 5, None),),
    ) -> None:  # fmt: skip
        self.real, self.encoder, self.worth, self.fails = real, encoder, worth, fails
        self.asked: list[tuple[str, Sequence[int], int | None, str]] = []

    def __call__(self, plugins: Installed, name: str, **given: Any) -> dict[str, Any]:
        if not given.get("run", True):
            return dict(self.real(plugins, name, **given))
        points = given.get("points") or (1, 2, 3)
        steps, questions = given.get("steps"), given["data"]["questions"]
        self.asked.append((Path(name).stem, points, steps, Path(questions).name))
        lines = (Path(questions) / "queries.jsonl").read_text().splitlines()
        base = np.random.default_rng(0).uniform(0.3, 0.5, len(lines))
        rows = []
        for point in points:
            for seed in given.get("seeds") or [1]:
                raced = Path(name).stem == "space"
                worth = self.worth[point] * (steps or 0) / 81 if raced else 0.0
                gains = base + worth + np.random.default_rng(seed).normal(0, 0.01, len(base))
                failed = bool({(Path(name).stem, point, n) for n in (None, steps)} & {*self.fails})
                folder = Path(given["out"]) / "runs" / f"{Path(name).stem}-{point}-{steps}-{seed}"
                if not raced and point == 1:
                    folder = Path(self.encoder)  # the start
                elif not (failed or folder.exists()):
                    shutil.copytree(self.encoder, folder)
                    shutil.copytree(self.encoder, folder / "model")
                    folder.with_suffix(".toml").write_text("[train]\n")
                given["hear"](f"{point}", seed, "failed" if failed else "done", "it broke")
                rows.append({
                    "number": point, "seed": seed, "run": str(folder), "seconds": 0.5,
                    "status": "failed" if failed else "done", "line": "it broke",
                    "items": {} if failed else {"x.test": {"ndcg@10": gains}},
                })  # fmt: skip
        return {"rows": rows, "points": [], "left_out": {}}


@pytest.mark.parametrize("sign", [1, 0, -1])
def test_the_best_of_a_race_wins_and_is_judged_once(
    sign: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, docs = make_encoder(tmp_path / "tiny"), notes(tmp_path / "docs", 200)
    plugins = Installed()
    worth = {n: sign * 0.01 * n for n in range(1, 7)}
    study = MadeUp(plugins.commands.function("study"), encoder, worth)
    monkeypatch.setattr(plugins.commands, "function", lambda name: study)
    six = SPACE.replace('recipe = "cosent"\n', 'recipe = "cosent"\n\n[[axes]]\nname = "lr"\n'
                        'values = { "train.lr" = [1e-4, 3e-4, 1e-3] }\n').replace(
                            '"train.lr" = 3e-3\n', "")  # fmt: skip
    (tmp_path / "space.toml").write_text(six)
    given: dict[str, Any] = {
        "model": encoder, "out": tmp_path / "out", "space": tmp_path / "space.toml",
        "seeds": 2, "steps": 81,
    }  # fmt: skip
    result = tune(plugins, [str(docs)], **given)
    by_number = {row["number"]: row for row in result["race"]}
    (best,) = (n for n, row in by_number.items() if row["left"] is None)
    assert best == {1: 6, 0: best, -1: 1}[sign]
    assert by_number[5]["left"] == "failed" and by_number[5]["line"] == "it broke"
    assert result["better"] == (sign > 0) and (tmp_path / "out" / "model").exists() == (sign > 0)
    raced = [(len(points), steps) for name, points, steps, asked in study.asked
             if name == "space" and asked == "race"]  # fmt: skip
    # Of one that is left the second rung says nothing; of equal ones a quarter goes on.
    assert raced == ([(6, 5), (1, 81)] if sign else [(6, 5), (2, 20), (1, 81)])
    judged = [entry for entry in study.asked if entry[3] == "judge"]
    assert [entry[:3] for entry in judged] == [("space", [best], 81), ("beside", (1, 2, 3), 81)]
    assert result["means"]["SimCSE"] == pytest.approx(
        result["means"]["winner"] - result["differences"]["SimCSE"]["value"]
    )
    rates = {6: "train.lr 0.001 is the largest of the space", 1: "train.lr 0.0001 is the least of"}
    if sign:
        (line,) = result["ends"]
        assert line.startswith(rates[best])
    kept = [path.parent.name for path in (tmp_path / "out" / "studies").rglob("model")]
    assert sorted(kept) == [f"space-{best}-81-{seed}" for seed in (1, 2, 3)]
    asked = len(study.asked)
    assert tune(plugins, [str(docs)], **given) == json.loads(json.dumps(result))
    assert len(study.asked) == asked, "a finished race is only read"


def test_where_the_last_of_a_race_fail_those_without_room_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, docs = make_encoder(tmp_path / "tiny"), notes(tmp_path / "docs", 200)
    plugins, made = Installed(), space(tmp_path, SPACE.replace("cosent", "simcse"))
    fails = [("space", 1, 81), ("beside", 3, None)]
    study = MadeUp(plugins.commands.function("study"), encoder, dict.fromkeys((1, 2, 3), 0), fails)
    monkeypatch.setattr(plugins.commands, "function", lambda name: study)
    given: dict[str, Any] = {"model": encoder, "space": made, "seeds": 2, "steps": 81}
    result = tune(plugins, [str(docs)], out=tmp_path / "out", **given)
    left = {row["label"]: row["left"] for row in result["race"]}
    assert left == {"titles": "failed", "adapt": None, "graded": "room"}
    assert result["verdict"].endswith("; not compared with adapt: it broke")
    assert "SimCSE" in result["differences"] and "adapt" not in result["means"]
    study.fails = [("beside", 1, None)]
    with pytest.raises(CseError, match="could not be scored: it broke"):
        tune(plugins, [str(docs)], out=tmp_path / "other", **given)


def test_a_folder_with_other_things_is_refused_as_it_is(cse: Cse, tmp_path: Path) -> None:
    (tmp_path / "out" / "model").mkdir(parents=True)
    docs = notes(tmp_path / "docs", 60)
    done = cse("tune", str(docs), "--model", "starter", "--out", str(tmp_path / "out"))
    assert done.code == 2 and "holds other things: model" in done.err
    assert (tmp_path / "out" / "model").is_dir()
    (tmp_path / "busy").mkdir()
    docs = notes(tmp_path / "more", 200)
    with lock_folder(tmp_path / "busy", "--out", "racing in it"):
        done = cse("tune", str(docs), "--model", "starter", "--out", str(tmp_path / "busy"))
    assert done.code == 2 and "racing in it" in done.err and "tune.json" not in done.err
    nowhere = ("--model", "starter", "--out", str(tmp_path / "nowhere"))
    for words, what in (
        (("none.md",), "no such file"),
        ((str(docs), "--minutes", "inf"), "(got inf"),
    ):
        done = cse("tune", *words, *nowhere)
        assert done.code == 2 and what in done.err and not (tmp_path / "nowhere").exists()


def test_what_cannot_be_raced_is_refused(cse: Cse, tmp_path: Path) -> None:
    encoder, texts = make_encoder(tmp_path / "tiny"), tmp_path / "texts.txt"
    texts.write_text("\n".join(pieces(200)))
    untitled = cse("tune", str(texts), "--model", encoder, "--out", str(tmp_path / "out"))
    assert untitled.code == 2 and "have a title of their own" in untitled.err
    assert not (tmp_path / "out" / "tune.json").exists()
    none = cse("tune", str(tmp_path / "no"), "--model", encoder)
    assert none.code == 2 and "no such file" in none.err


def test_encoders_are_compared_by_titles_headings_and_sentences(cse: Cse, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number, text in enumerate(pieces(40)):
        one, two, *_ = text.split()
        (docs / f"{number}.md").write_text(
            f"# {one} {WORDS[number]}\n\n{text}\n\n## {two} {number}\n\n{text[::-1]}\n"
        )
    names = [make_encoder(tmp_path / name, seed=seed) for seed, name in enumerate(("one", "two"))]
    done = cse("choose", str(docs), *names, "--json")
    result = json.loads(done.out)
    assert done.code == 0 and result["decides"] == "titles", done.err
    assert result["questions"]["titles"] == 40 == result["questions"]["headings"]
    first, second = result["models"]
    (pair,) = result["pairs"]
    change = first["scores"]["titles"] - second["scores"]["titles"]
    assert pair["value"] == pytest.approx(change) and change >= 0
    assert result["words"]["titles"] > 10, "a title shares a word with its text"
    Path(names[1], "recipe.toml").touch()  # as beside what was trained
    table = cse("choose", str(docs), *names)
    assert table.code == 0 and result["verdict"] in table.out
    assert [f"note: {name}: if it was trained on" in table.err for name in names] == [False, True]


@pytest.mark.filterwarnings("ignore:17 % of the tokens are unknown")
def test_an_encoder_finds_what_a_loop_says(tmp_path: Path) -> None:
    docs, encoder = notes(tmp_path / "docs", 60), make_encoder(tmp_path / "tiny")
    plugins = Installed()
    asked = choosing.questions_of([str(docs)], plugins)
    model = load(encoder, plugins=plugins)
    result = choosing.choose(plugins, [str(docs)], [encoder], precision="fp32")
    for kind, part in asked.kinds.items():
        gains = []
        texts = model.encode(part.texts, normalize=True)
        asking = model.encode([question for _, question in part.asked], normalize=True)
        for (document, _), vector in zip(part.asked, asking, strict=True):
            scores = texts @ vector
            best = max(s for s, owner in zip(scores, part.owners, strict=True) if owner == document)
            rank = sum(
                s >= best for s, owner in zip(scores, part.owners, strict=True) if owner != document
            )
            gains.append(1 / np.log2(rank + 2) if rank < 10 else 0.0)
        assert result["models"][0]["scores"][kind] == pytest.approx(100 * np.mean(gains), abs=0.5)
    sentences = asked.kinds["sentences"]
    answers = dict(enumerate(sentences.texts))
    assert all(text not in answers[row] for row, text in sentences.asked)


def test_too_few_questions_decide_nothing(cse: Cse, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("one two\nthree four\n")
    done = cse("choose", str(file), make_encoder(tmp_path / "tiny"))
    assert done.code == 2 and "30 of a kind are needed" in done.err


@pytest.mark.slow
def test_where_nothing_can_be_learned_few_winners_are_better(tmp_path: Path) -> None:
    """A test at 5 % finds about 2.5 of 100 better by chance, and as many worse."""
    encoder, plugins, better = make_encoder(tmp_path / "tiny"), Installed(), []
    made = space(tmp_path)
    for seed in range(100):
        file = tmp_path / f"{seed}.jsonl"
        rows = nothing_to_learn(seed, 480 if seed % 3 == 2 else 240)  # half of those are copies
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = tune(plugins, [str(file)], model=encoder, out=tmp_path / f"{seed}", space=made,
                      seeds=2, steps=9, minutes=60)  # fmt: skip
        better += [result["verdict"]] if result["better"] else []
    assert len(better) <= 5, better

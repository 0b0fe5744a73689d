"""Questions and answers of texts, their ranks beside an obvious loop, verdicts, and whole runs."""

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from cse_adapt.held_out import CANDIDATES, POOL, HeldOut, HeldOutSet
from cse_testkit import make_context, make_part
from safetensors.torch import load_file

from cse import Bm25, train
from cse.questions import PASSAGES, Questions, by_sentence, sentences
from cse_core.errors import CseError
from cse_core.types import View
from cse_defaults.texts import Corpus
from cse_defaults.texts.copies import near_copies
from cse_defaults.texts.corpus import hold_out
from tests.fixtures.command_line import Cse
from tests.fixtures.evaluation import HashEncoder
from tests.fixtures.methods import round_context
from tests.fixtures.tiny import WORDS, make_encoder
from tests.fixtures.titled import notes, nothing_to_learn, pieces

VIEWS: Any = {name: View(name, name, "online") for name in ("anchor", "positive")}
TEXT = "One two three four. Five! Six seven eight nine? Ten eleven twelve thirteen."


def corpus_of(text: Sequence[str], **columns: Sequence[str]) -> Corpus:
    return Corpus.from_columns({"text": text, **columns})


def asked(
    texts: list[str], heads: list[str] | None = None, step: int = 0, log: Any = None, **given: Any
) -> list[tuple[str, str]]:
    part = make_part("aug", "question", **given)
    columns = {"text": texts} | ({} if heads is None else {"title": heads})
    rows: Any = SimpleNamespace(columns=tuple(columns))
    part.begin_round(rows, round_context(corpus_of(**columns)))
    ctx = make_context(step=step, log=log, texts=columns)
    views = (part(texts, None, VIEWS[name], ctx) for name in ("anchor", "positive"))
    return [*zip(*views, strict=True)]


def test_what_a_row_asks_is_drawn_in_every_step() -> None:
    drawn, log = Counter[str](), dict[str, Any]()
    for step in range(400):
        ((question, answer),) = asked([TEXT], ["Head"], step, log)
        drawn[question] += 1
        if question != "Head":
            assert answer == f"Head {TEXT}" or by_sentence("Head", TEXT, 0)
            drawn["kept"] += question in answer
        else:
            assert answer == TEXT
        assert log["question.titles"] == (question == "Head") != log["question.sentences"]
    assert 160 < drawn["Head"] < 240 and 8 < drawn["kept"] < 40, drawn
    assert all(40 < drawn[sentences(TEXT)[place]] < 100 for place in (0, 2, 3)), drawn
    always = {asked([TEXT], ["Head"], step, titles=1.0)[0][0] for step in range(20)}
    never = {asked([TEXT], ["Head"], step, titles=0.0, keep=1.0)[0] for step in range(60)}
    assert always == {"Head"} and len(never) == 3
    assert {answer for _, answer in never} == {f"Head {TEXT}"}


def test_rows_without_titles_or_sentences() -> None:
    log: dict[str, Any] = {}
    texts = [TEXT, "one two three four five", "No title. Nothing."]
    found = asked(texts, log=log)
    assert found[0][0] in sentences(TEXT) and log == {
        "question.titles": 0.0,
        "question.sentences": 1 / 3,
    }
    assert all(len(span.split()) == 3 for span in found[1])
    assert found == [asked([text])[0] for text in texts], "each by itself"
    assert asked(["One only."], ["Head"], 3) == [("Head", "One only.")]


def cosine(one: str, two: str) -> float:
    a, b = HashEncoder().vector(one), HashEncoder().vector(two)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def looked_up(asked: Sequence[tuple[int, str]], answers: Sequence[tuple[int, str]]) -> Any:
    """Return the rank, nDCG@10 and agreement with BM25 of each question, by a loop."""
    words = Bm25.of([text for _, text in answers])
    for document, question in asked:
        near = [cosine(question, text) for _, text in answers]
        best = max(n for n, (d, _) in zip(near, answers, strict=True) if d == document)
        rank = sum(n >= best for n, (d, _) in zip(near, answers, strict=True) if d != document)
        firsts = (
            {*sorted(range(len(answers)), key=lambda row: -values[row])[:10]}  # noqa: B023
            for values in (near, words.scores(question))
        )
        gain = 1 / np.log2(rank + 2) if rank < 10 else 0.0
        yield rank, gain, len(set.intersection(*firsts)) / 10


def test_ranks_are_those_of_a_loop() -> None:
    """Every third document chooses, by titles or sentences; the titles of others judge."""
    texts, others, encoder = pieces(24), pieces(7, 1), HashEncoder()
    documents = [0, 0, 1, 2, 2, 3, 3, 4, 5, 6, 7, *range(8, 21)]
    titles = [f"{WORDS[d]} {WORDS[d + 9]}" if d != 3 else "" for d in documents]
    held = corpus_of([f"{t} {text}".strip() for t, text in zip(titles, texts, strict=True)],
                     title=titles, document=[f"doc {d}" for d in documents])  # fmt: skip
    found = HeldOut().dev_of_rows(held, corpus_of(others))
    rows = [*zip(documents, titles, texts, strict=True)]
    wanted = [(d, title) for d, title, _ in rows if d % 3 == 0 and title]
    asked = [*found.chooses.asked]
    assert [pair for pair in asked if pair[1] in titles] == [*dict.fromkeys(wanted)]
    sentence = dict.fromkeys(question for d, question in asked if d == 3)
    answers = [(d, text) for d, _, text in rows if d % 3 == 0]
    for question in sentence:
        (place,) = (p for p, (d, text) in enumerate(answers) if d == 3 and question in text)
        left = " ".join(part for part in sentences(answers[place][1]) if part != question)
        answers[place] = 3, left
    answers += [(-1, text) for text in others]
    assert [*zip(found.chooses.owners, found.chooses.texts, strict=True)] == answers
    assert (found.name, found.size) == ("held-out", len(answers))
    loop = [*looked_up(asked, answers)]
    scores = found.score(encoder)
    assert scores["ndcg@10"] == pytest.approx(100 * np.mean([gain for _, gain, _ in loop]))
    assert scores["mrr"] == pytest.approx(100 * np.mean([1 / (rank + 1) for rank, _, _ in loop]))
    assert scores["bm25_agreement"] == pytest.approx(100 * np.mean([share for *_, share in loop]))
    assert 0 < scores["effective_rank"] <= 8 and -1 <= scores["mean_cosine"] <= 1
    judging = [*dict.fromkeys((d, title) for d, title, _ in rows if d % 3)]
    assert [*found.judges.asked] == judging
    pool = [(d, text) for d, _, text in rows] + [(-1, text) for text in others]
    loop = [*looked_up(judging, pool)]
    assert found.answers(encoder) == pytest.approx(np.array([line[1:] for line in loop]))
    assert found.note().startswith(f"{len(judging)} titles judge among 31 texts")


def test_titles_of_several_documents_and_repeated_ones() -> None:
    texts = ["Red lamp. Here we read of the sea. Boats go out.", "The red Lamp burns. It is warm."]
    held = corpus_of([*texts, "Red lamp. All is said here."], title=["Red lamp", "Red lamp", "x"],
                     document=["a", "a", "b"])  # fmt: skip
    found = HeldOutSet.of(held, corpus_of(["d"]))
    assert {document for document, _ in found.chooses.asked} == {0}
    assert all(question in " ".join(texts) for _, question in found.chooses.asked)
    assert "Red lamp" not in {question for _, question in found.chooses.asked}
    heads = ["One", "two", "Two", "three", "four", "Five"]
    held = corpus_of(pieces(6), title=heads, document=[*"abcdef"])
    found = HeldOutSet.of(held, corpus_of(pieces(1, 5), title=["FIVE"]))
    assert [question for _, question in found.judges.asked] == ["four"], "by only one document"


def test_trained_texts_stand_beside_those_held_out() -> None:
    many = pieces(3 * CANDIDATES, 2)
    found = HeldOutSet.of(corpus_of(pieces(9)), corpus_of(many))
    assert found.size == 3 + CANDIDATES and found.chooses.texts[3:] == (*many[::3],)
    assert found.chooses.owners == (0, 3, 6, *[-1] * CANDIDATES)
    assert len(found.judges.texts) == 9 + len(many) and not found.judges.asked
    held = corpus_of(pieces(6), document=["a", "", "", "a", "", "b"])
    assert HeldOutSet.of(held, corpus_of(["d"])).chooses.owners == (0, 0, 3, -1)
    with pytest.raises(CseError, match="no text has a title"):
        HeldOutSet.of(corpus_of(["a b", "c"]), corpus_of(["d"]))


def test_of_long_documents_few_texts_are_encoded() -> None:
    count, length = 40, 2 * PASSAGES
    texts = pieces(count * length)
    named = [f"d{row // length}" for row in range(len(texts))]
    found = HeldOutSet.of(
        corpus_of(texts, document=named, title=[f"of {name}" for name in named]),
        corpus_of(pieces(8 * POOL, 4)),
    )
    assert found.size == -(-count // 3) * PASSAGES + CANDIDATES
    assert 0.9 * POOL < len(found.judges.texts) <= POOL
    places = [texts.index(text) for text in found.judges.texts[: count * PASSAGES]]
    assert {*Counter(place // length for place in places).values()} == {PASSAGES}


def test_vectors_that_are_not_finite_are_refused() -> None:
    found = HeldOutSet.of(corpus_of(pieces(5)), corpus_of(["d"]))
    with pytest.raises(CseError, match="not finite"):
        found.score(lambda texts: np.full((len(texts), 3), np.nan, np.float32))


def judged(count: int, **given: Any) -> HeldOutSet:
    questions = Questions(("a",), (0,), tuple((0, str(number)) for number in range(count)))
    return HeldOutSet("held-out", ("ndcg@10",), 0, Questions(), questions, **given)


@pytest.mark.parametrize(
    ("change", "word", "better"), [(0.2, "better:", True), (-0.2, "worse:", False),
                                   (0.0, "no better:", False)],
)  # fmt: skip
def test_verdicts(change: float, word: str, better: bool) -> None:
    draws = np.random.default_rng(0)
    start = np.stack([draws.uniform(0.3, 0.6, 80), draws.uniform(0.3, 0.6, 80)], axis=1)
    end = start.copy()
    end[:, 0] += change + np.random.default_rng(1).normal(0, 0.1, 80)
    found = judged(80).verdict(start, end)
    assert found.text.startswith(word) and found.better is better
    gain = 100 * (end - start)[:, 0]
    means = [f"{100 * part[:, 0].mean():.2f}" for part in (start, end)]
    assert f"{means[0]} at the start, {means[1]} now" in found.text
    error = 1.96 * gain.std() / 80**0.5
    low, high = (float(n) for n in found.text.rpartition("interval ")[2][:-1].split(" to "))
    assert (low, high) == pytest.approx((gain.mean() - error, gain.mean() + error), abs=0.15)
    mixed = judged(80, ordered=False).verdict(start, end)
    assert not mixed.better and mixed.text.startswith("worse (" if change < 0 else "no better (")
    end[:, 1] -= 0.06
    forgets = judged(80).verdict(start, end)
    assert not forgets.better and "(agreement with BM25 fell from" in forgets.text
    few = judged(9).verdict(start[:9], end[:9])
    assert few.better is None and few.text.startswith("cannot be judged without titles or queries")


def test_one_document_chooses_and_nothing_judges() -> None:
    found = HeldOut().dev_of_rows(corpus_of(["a b", pieces(1)[0]]), corpus_of(["d"]))
    assert [document for document, _ in found.chooses.asked] == [1]
    assert np.isfinite(list(found.score(HashEncoder()).values())).all()
    assert not len(found.answers(HashEncoder()))


STEPS = ("--train.max_steps", "6", "--train.eval_steps", "3", "--model.max_length", "24",
         "--data.held_out", "18", "--train.batch_size", "16")  # fmt: skip


def test_a_folder_is_adapted_and_judged(cse: Cse, tmp_path: Path) -> None:
    encoder, docs = make_encoder(tmp_path / "tiny"), notes(tmp_path / "docs")
    words = ("train", "--recipe", "adapt", "--model", encoder, "--data", str(docs), *STEPS)
    plan = cse(*words, "--dry-run", "--json")
    facts = json.loads(plan.out)
    assert plan.code == 0 and facts["facts"]["rows"] == 72, plan.err
    for name, rate in (("kept", "0"), ("trained", "1e-3")):
        done = cse(*words, "--train.lr", rate, "--out", str(tmp_path / name), "--json")
        assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["start"] is not None and result["verdicts"]
    same = json.loads((tmp_path / "kept" / "result.json").read_text())
    assert same["step"] == 0 and same["verdicts"][0].startswith("no better: nDCG@10 of 12 titles")
    assert same["verdicts"][-1].startswith("kept the start")
    folders = Path(encoder), tmp_path / "kept" / "model"
    checkpoints = tmp_path / "kept" / "checkpoints"
    assert [path.name for path in checkpoints.iterdir()] == ["step-0"]
    assert sum(file.stat().st_size for file in checkpoints.rglob("*")) < 20_000
    (tmp_path / "trained" / "result.json").unlink()
    weights = (tmp_path / "trained" / "model" / "model.safetensors").read_bytes()
    again = cse("train", "--resume", str(tmp_path / "trained"))
    assert again.code == 0 and "resuming after step 0" in again.err, again.err
    assert (tmp_path / "trained" / "model" / "model.safetensors").read_bytes() == weights
    assert "Citation" not in (folders[1] / "README.md").read_text()
    before, after = (load_file(folder / "model.safetensors") for folder in folders)
    assert all(torch.equal(before[name], after[name]) for name in after)


def test_texts_without_titles_are_trained_on_and_judged_by_nobody(cse: Cse, tmp_path: Path) -> None:
    encoder, data = make_encoder(tmp_path / "tiny"), tmp_path / "texts.txt"
    data.write_text("\n".join(pieces(90, 3)) + "\n")
    words = ("train", "--recipe", "adapt", "--model", encoder, "--data", str(data), *STEPS,
             "--train.lr", "1e-2", "--train.eval_steps", "1", "--train.patience", "9")  # fmt: skip
    plan = cse(*words, "--dry-run")
    said = "cannot be judged without titles or queries (0 held out, 10 needed)"
    assert f"verdict: {said}" in plan.out, plan.err
    done = cse(*words, "--out", str(tmp_path / "run"))
    assert done.code == 0, done.err
    before = load_file(Path(encoder) / "model.safetensors")
    for name, same in (("model", True), ("rejected/model", False)):
        after = load_file(tmp_path / "run" / name / "model.safetensors")
        assert all(torch.equal(before[key], after[key]) for key in after) == same, name
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["step"] == 0 and result["verdicts"][0].startswith(said)
    assert "the rejected weights are in" in done.out + done.err


def test_held_out_documents_are_whole_and_the_same_in_any_order() -> None:
    texts = pieces(40)
    named = [f"d{number // 2}" for number in range(40)]
    corpus = corpus_of(texts, document=named)
    found = hold_out(corpus, 3)
    held = found.held_out
    assert held is not None and (len(found), len(held)) == (34, 6)
    inside = {*held.column("document")}
    assert len(inside) == 3 and inside.isdisjoint(found.column("document"))
    assert held.documents is not None and found.documents is not None
    turned = hold_out(corpus_of(texts[::-1], document=named[::-1]), 20).held_out
    assert turned is not None and len(turned) == 8, "a fifth at most"
    again = hold_out(corpus_of(texts, document=named), 4).held_out
    assert again is not None and inside < {*again.column("document")}
    assert hold_out(corpus, 0) is corpus
    assert found.fingerprint != hold_out(corpus, 2).fingerprint
    with pytest.raises(CseError, match="too few"):
        hold_out(corpus_of(["a", "b"]), 1)


def test_near_copies_of_held_out_documents_are_not_trained_on() -> None:
    """Beside an obvious loop; of two releases of each page, no half of a page is on both sides."""
    draws = random.Random(0)
    pages = [[" ".join(draws.choices(WORDS, k=30)) for _ in range(3)] for _ in range(20)]
    texts, named = [], []
    for release in ("one", "two"):
        for number, page in enumerate(pages):
            changed = [part.upper() if release == "two" else f"{part}." for part in page]
            texts += [f"Release {release}, page {number}", *changed]
            named += [f"{release}{number}"] * 4
    corpus = corpus_of([*texts, "a", "b c"], document=[*named, "", ""])
    trained = hold_out(corpus, 8)
    held = trained.held_out
    assert held is not None
    sides = [{name[3:] for name in part.column("document") if name} for part in (trained, held)]
    assert sides[0].isdisjoint(sides[1]) and len(sides[1]) >= 4
    copies = (len(texts) + 2 - len(trained) - len(held)) // 4
    assert f"{copies} near-copies" in trained.report.lines[-1]
    with pytest.raises(CseError, match="all others are near-copies"):
        hold_out(corpus_of([f"{TEXT} {number}" for number in range(10)]), 2)

    rows = [
        *pages[0],
        " ".join(pages[0][0].split()[:16]),
        pages[1][0],
        "a",
        "A!",
        "a b",
        "鸟在天上飞翔",
    ]
    rows += ["鸟在天上飞翔。", "!!!", "???"]

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"[\u4e00-\u9fff]|[a-z]+", text.lower())
        return {tuple(words[at : at + 5]) for at in range(max(1, len(words) - 4))} - {()}

    some = [0, 3, 5, 8]

    def are_near(row: int, other: int) -> bool:
        one, two = runs(rows[row]), runs(rows[other])
        before = row not in some or row > other
        return before and bool(one) and 2 * len(one & two) >= min(len(one), len(two))

    loop = [any(are_near(row, other) for other in some if row != other) for row in range(len(rows))]
    table = corpus_of(rows).table.column("text")
    assert near_copies(table, np.arange(len(rows)), some).tolist() == loop
    assert sum(loop) == 3


def test_the_order_of_rows_changes_nothing_held_out() -> None:
    texts = pieces(30)
    one, two = (hold_out(corpus_of(each), 5).held_out for each in (texts, texts[::-1]))
    assert one is not None and two is not None
    assert {*one.column("text")} == {*two.column("text")}


@pytest.mark.slow
def test_where_nothing_can_be_learned_few_runs_are_better(tmp_path: Path) -> None:
    """A test at 5 % finds about 2.5 of 100 better by chance, and as many worse."""
    encoder, better = make_encoder(tmp_path / "tiny"), []
    for seed in range(100):
        run = train(
            "adapt", model=encoder, data=nothing_to_learn(seed), seed=seed, quiet=True,
            out=tmp_path / f"{seed}",
            options={"train.max_steps": 6, "train.eval_steps": 3, "train.lr": 1e-3,
                     "model.max_length": 24, "train.batch_size": 16},
        )  # fmt: skip
        better += [line for line in run.outcome.verdicts if line.startswith("better")]
    assert len(better) <= 5, better

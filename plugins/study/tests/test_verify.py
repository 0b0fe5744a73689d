"""``cse verify`` of a pack that lies here, and rows of others in a study's tables."""

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cse_study.definition.reading import find_study
from cse_study.execution.packs import HINT, Head, _without_places, read_pack
from cse_study.planning.composing import model_digest
from cse_study.provenance import _model, _texts, check_there, inputs_of, locate
from cse_testkit import shared_encoder

from cse_core.errors import CseError
from cse_defaults.documents.walk import Walk
from tests.fixtures.command_line import CSE, Cse, Printed, refused
from tests.fixtures.methods import refusal
from tests.fixtures.studies import plugins

HERE = Path(__file__).parent / "tiny"
PACK, STUDY = HERE / "tiny.gz", HERE / "tiny.toml"
VERIFY = ("verify", str(PACK), "--study", str(STUDY))
NAMED = ("--data", str(HERE / "tiny.txt"), "--dev", str(HERE / "tiny.tsv"), "--pairs",
         str(HERE / "tiny.tsv"))  # fmt: skip


def test_a_published_row_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal with the processor and the versions of the pack, near with others.

    A row that is another here, or whose key is: a change of code changed the numbers of runs, or
    what runs are made of. If that was meant, ``cse study tiny.toml … --pack tiny.gz`` writes it.
    """
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    words = [CSE, *VERIFY, "--files", str(HERE), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    (row,) = said["rows"]
    same = all(line.startswith("commit: ") for line in said["differs"])
    assert row["verdict"] in (("equal",) if same else ("equal", "near")), said


def test_rows_are_listed_and_what_is_not_there_is_named(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSE_DATA_DIR", str(tmp_path / "sets"))
    (tmp_path / "sets").mkdir()
    shown = cse(*VERIFY, "--dry-run", "--files", str(HERE / "tiny.txt"))
    assert shown.code == 0, shown.err
    assert "temperature=0.05" in shown.out and "by its name: starter" in shown.out
    assert "\nthere: tiny.txt (1,904 bytes" in shown.out
    assert "not there: tiny.tsv (1,084 bytes, sha256 c1feb414" in shown.out
    links = tmp_path / "links"
    links.mkdir()
    (links / "texts").symlink_to(HERE, target_is_directory=True)
    (links / "loop").symlink_to(links, target_is_directory=True)
    assert "not there" not in cse(*VERIFY, "--dry-run", "--files", str(links)).out
    refused(cse(*VERIFY, "--files", str(HERE / "tiny.txt")), "tiny.tsv (1,084 bytes, sha256 c1feb4",
            "is not among the files that were named; --files DIR")  # fmt: skip
    refused(cse(*VERIFY, "--seeds", "7,", "--dry-run"), "has no row of these points and seeds")
    refused(cse(*VERIFY[:2]), "its study tiny is not installed", "--study FILE")
    changed = tmp_path / "changed.toml"
    changed.write_text(STUDY.read_text().replace('batch_size" = 8', 'batch_size" = 4'))
    words = ("--study", str(changed), "--files", str(HERE))
    shown = cse(*VERIFY[:2], *words)
    assert shown.code == 2 and "note: study: changed has changed what its runs are" in shown.err
    assert "error: cse verify: temperature=0.05, seed 1, is another run here" in shown.err


def test_an_interrupt_writes_what_ended(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cse_study.verifying.carry_out", stop)
    done = cse(*VERIFY, "--files", str(HERE), "--out", str(tmp_path / "marked.gz"))
    assert done.code == 130 and "stopped: the other rows were not repeated" in done.err
    assert (tmp_path / "marked.gz").is_file()


def changed(
    file: Path, change: Callable[[dict[str, Any]], object], line: dict[str, Any] | None = None
) -> Path:
    """Write the pack of this folder to a file, with a change of its head, and of its run."""
    head, run = map(json.loads, gzip.decompress(PACK.read_bytes()).splitlines())
    change(head["study"])
    text = "\n".join(map(json.dumps, (head, {**run, **(line or {})})))
    file.write_bytes(gzip.compress(text.encode()))
    return file


def test_a_head_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    wrong: list[Callable[[dict[str, Any]], object]] = [
        lambda head: head["dev"][0]["files"][0].update(name="../../x"),
        lambda head: head["dev"][0].update(name="/etc/passwd"),
        lambda head: head["dev"][0].update(name="a\x1b[2Jb"),
        lambda head: head["dev"][0]["files"][0].update(sha256="x"),
        lambda head: head["dev"][0]["files"][0].update(size=-1),
        lambda head: head.update(seeds=[]),
        lambda head: head.update(seeds=["one"]),
        lambda head: head.update(study="x\ny"),
        lambda head: head["rows"][0].update(labels={"temperature": ["x"]}),
        lambda head: head["rows"][0].update(labels={"temperature": "\x1b[2J"}),
        lambda head: head.pop("scoring"),
    ]
    for change in wrong:
        file = changed(tmp_path / "x.gz", change)
        line = refusal(read_pack, file, "cse verify")
        assert line.startswith("cse verify: line 1 is not the head of a pack (got '")
        assert line.endswith(HINT)


def test_documents_and_models_are_laid_out_as_they_were(tmp_path: Path) -> None:
    encoder = str(shared_encoder())
    docs, model = tmp_path / "docs", tmp_path / "model"
    (docs / "left").mkdir(parents=True)
    for name, text in (("a.md", "A boat."), ("left/b.md", "A lamp."), (".gitignore", "left/")):
        (docs / name).write_text(text)
    shutil.copytree(encoder, model)
    (model / "README.md").write_text("of no matter for its vectors")
    weights = _model(str(model), plugins())
    assert weights.same(_model(encoder, plugins()))
    head = Head(study="x", definition="x", seeds=(1,), scoring="0" * 16, models={"": weights},
                data={"documents": (_texts(str(docs), plugins()),)})  # fmt: skip
    there = locate(head, [docs, Path(encoder)])
    check_there(head, there)
    inputs, _, _ = inputs_of(head, there, tmp_path / "laid")
    (laid,) = inputs.data["documents"]
    assert [path.name for path in Walk(Path(laid)).paths()] == ["a.md"]
    assert model_digest(inputs.models[""], plugins()) == model_digest(encoder, plugins())


def test_a_test_set_of_any_name_stays_in_a_pack() -> None:
    said = {"model": "/a", "results": {"words": {"file": "/b", "spearman": 1.0}}}
    assert _without_places(said) == {"results": {"words": {"spearman": 1.0}}}


def mine(folder: Path, label: str = "0.5", more: str = "") -> Path:
    """Write a study that adds a place to that of this folder."""
    file = folder / "mine.toml"
    place = f'[[places]]\nlabel = "{label}"\n"loss.infonce.temperature" = 0.5\n'
    file.write_text(f'extends = "{STUDY}"\n{more}{place}')
    return file


def test_a_study_extends_another(tmp_path: Path) -> None:
    made, base = (find_study(str(file), plugins()) for file in (mine(tmp_path), STUDY))
    assert made.points[:1] == base.points and made.labels == ["0.05", "0.5"]
    assert made.study.settings == base.study.settings
    newer = 'extends = "cse/equal-footing-newer"\n[[places]]\nlabel = "Mine"\nrecipe = "mine"\n'
    (tmp_path / "mine.toml").write_text(newer)
    points = find_study(str(tmp_path / "mine.toml"), plugins()).points
    assert [p.label for p in points[-3:]] == ["Mine, 1e-5", "Mine, 5e-5", "Mine, 2.5e-4"]
    whole = 'extends = "cse/papers"\n[[places]]\nlabel = "Mine"\nrecipe = "mine"\n'
    (tmp_path / "mine.toml").write_text(f'{whole}columns = {{ format = "bf16" }}\n')
    (*_, last) = find_study(str(tmp_path / "mine.toml"), plugins()).points
    assert (last.label, last.columns) == ("Mine, 1e-3", {"format": "bf16"})
    for text, said in {
        whole: "places.1: lacks a value for the column 'format' of cse/papers; columns = { for",
        'extends = "cse/equal-footing-newr"': "extends: no study of this name is installed",
        f'extends = "{STUDY}"\nseeds = [2]': "is that of the other study (got 'seeds')",
        f'extends = "{STUDY}"': "adds no place; write a table [[places]]",
        'extends = "mocose/table-7"\n[[places]]\nlabel = "x"': "no axis of [[axes.places]]",
    }.items():
        (tmp_path / "mine.toml").write_text(text)
        with pytest.raises(CseError) as caught:
            find_study(str(tmp_path / "mine.toml"), plugins())
        assert said in str(caught.value)


def test_rows_of_others_stand_in_the_table(cse: Cse, tmp_path: Path) -> None:
    file, key = tmp_path / "row.gz", "f" * 16
    words = ["study", str(STUDY), *NAMED, "--no-run", "--add", str(file), "--out"]
    unpack, none = ("--unpack", str(PACK)), tmp_path / "none"

    def add(change: Callable[[dict[str, Any]], object], **line: Any) -> Printed:
        changed(file, change, {"key": key, **line})
        return cse(*words, str(tmp_path / "out"), *unpack)

    def other(head: dict[str, Any], label: str = "0.5", axis: str = "temperature") -> None:
        settings = {"loss.infonce.temperature": 0.5}
        head["rows"][0] |= {"key": key, "labels": {axis: label}, "settings": settings}

    shown = add(other)
    assert shown.code == 0 and "0.5 (added)" in shown.out, shown.err
    about = (
        "chosen by others: 0.5 (from row.gz; loss.infonce.temperature = 0.5; not repeated by cse"
    )
    assert about in shown.out
    mark = {"verdict": "near", "largest": 0.01, "date": "2026-11-29", "processor": "P",
            "commit": "c"}  # fmt: skip
    shown = add(other, verified=mark)
    assert "; 1 of 1 rows repeated by cse verify: 1 near (P, 2026-11-29))" in shown.out
    texts = [{"name": "x", "files": [{"name": "x", "size": 1, "sha256": "0" * 64}]}]
    wrong: dict[str, Callable[[dict[str, Any]], object]] = {
        "is not on the study's axes, temperature": lambda h: other(h, axis="x"),
        "its row '0.05' is another run than that of the study": lambda h: other(h, "0.05"),
        "in model: y in the pack, starter": lambda h: h["models"][""].update(name="y"),
        "in texts for @sentences: x in the pack, tiny.txt here": lambda h: h["data"].update(
            sentences=texts
        ),
        "in dev sets: x in the pack": lambda h: h.update(dev=texts),
        "in --steps: 9 in the pack, none here": lambda h: h.update(steps=9),
        "in scoring: cse eval --pairs": lambda h: h.update(scoring="0" * 16),
        "has no row that the study lacks, with seeds 1": lambda h: None,
    }
    for said, change in wrong.items():
        changed(file, change, {"key": key})
        refused(cse(*words, str(none)), "--add: ", said, str(file))
    file.write_bytes(gzip.compress(gzip.decompress(PACK.read_bytes()).split(b"\n")[1]))
    refused(cse(*words, str(none)), "--add: does not say which study, texts and points")
    assert not none.exists()

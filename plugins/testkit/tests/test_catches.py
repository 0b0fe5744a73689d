"""The kit finds what a part breaks, by the right promise, and says what it was and where."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cse_testkit import LossSuite, SuiteSuite, failures, promises, suite_of
from cse_testkit.checking import of_record
from cse_testkit.promises import Suite, names_of
from cse_testkit.tiny import declared_columns, declared_options

from cse_core.errors import CseError
from plugins.testkit.tests.sound_parts import RECORDS
from plugins.testkit.tests.wrong_parts import INFO, TRAINS, WRONG, made_registry

SHAPES = sorted({each.part for each in WRONG} - {"Words", "Graded"})


@pytest.mark.parametrize("shape", SHAPES)
def test_a_broken_promise_is_found_with_its_file(shape: str) -> None:
    """As ``cse check-plugin`` prints it; one mistake is one failure."""
    missed = []
    for each in WRONG:
        if each.part != shape:
            continue
        asked = list(of_record(each.record, INFO, made_registry()))
        broken = [promise for promise in asked if promise.status == "broken"]
        fine = [promise.name for promise in broken] == [each.promise]
        after = asked[asked.index(broken[0]) + 1 :] if broken else []
        if not (
            fine
            and each.found in broken[0].detail
            and broken[0].says
            and re.search(r"(wrong|sound)_parts\.py(:\d+)?$", broken[0].file)
            and all(promise.status == "not asked" for promise in after)
        ):
            missed.append((each.name, each.promise, each.found, broken))
    assert not missed, "\n".join(map(str, missed))


def test_what_comes_after_a_broken_promise_would_find_it_too() -> None:
    for kind, name, promise, found in (
        ("loss", "wants-four", TRAINS, "IndexError"),
        ("loss", "nan-loss", TRAINS, "the loss of step 1 is nan"),
    ):
        asked = failures(suite_of(kind, name, made_registry()), [promise])  # type: ignore[arg-type]
        assert found in asked[promise], name


@pytest.fixture
def columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file in which a plugin declares columns of made-up texts."""
    text = '[project]\nname = "cse-sound"\n[tool.cse.columns]\ntopic = ["sport", "music"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    declared_columns.cache_clear()
    yield
    declared_columns.cache_clear()


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("columns")
def test_a_sound_part_keeps_every_promise(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each third, always, and what takes seconds of each: real parts of all kinds are asked too."""
    if step > 1:

        def quick(suite: type[Suite]) -> list[str]:
            return [name for name in names_of(suite) if name not in suite.thorough]

        monkeypatch.setattr(promises, "names_of", quick)
    for record in [*RECORDS.values()][::step]:
        asked = of_record(record, replace(INFO, distribution="cse-sound"), made_registry())
        assert not [each for each in asked if each.status == "broken"], record.name


@pytest.mark.usefixtures("columns")
def test_a_declared_column_and_a_teacher_of_another_dimension(tmp_path: Path) -> None:
    assert declared_columns("cse_sound") == {"topic": ["sport", "music"]}
    (wrong,) = (each for each in WRONG if each.part == "Graded")
    suite = suite_of("loss", wrong.name, made_registry(), columns={"topic": ["music"]})
    assert wrong.found in failures(suite)[wrong.promise]
    for content in ('"number"', "[1.5]", "[]"):
        text = f'[project]\nname = "cse-x"\n[tool.cse.columns]\nscore = {content}\n'
        (tmp_path / "pyproject.toml").write_text(text)
        with pytest.raises(CseError, match="tool.cse.columns.score: is not a type"):
            declared_columns("cse-x")
    text = '[project]\nname = "cse-y"\n[tool.cse.options.loss.far]\nteacher = "starter"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    assert declared_options("cse-y", "loss.far") == {"teacher": "starter"}
    assert declared_options("cse-y", "loss.near") == {}


def test_a_broken_suite_is_found_and_a_sound_one_passes(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a few words and a few more")

    def found(name: str) -> dict[str, str]:
        values = {"suite": name, "folder": tmp_path, "registry": made_registry()}
        return failures(type("Words", (SuiteSuite,), values))

    assert found("words") == {}
    for each in WRONG:
        if each.part == "Words":
            assert each.found in found(each.name)[each.promise], each.name


class WrongSlow(LossSuite):
    part = ("loss", "infonce")

    def slow(self, batch, targets, negatives, ctx, options):  # type: ignore[no-untyped-def]
        return 1.0


def test_another_value_than_the_slow_version_is_found() -> None:
    found = failures(WrongSlow)
    assert list(found) == ["equals_its_slow_version"]
    assert "by the slow version 1.0" in found["equals_its_slow_version"]


class LearnedSlow(LossSuite):
    part = ("loss", "plain")
    registry = made_registry()

    def slow(self, batch, targets, negatives, ctx, options, part):  # type: ignore[no-untyped-def]
        assert float(part.scale) == 2.0, "it has trained before"
        return part.value(batch, targets, negatives)


def test_a_slow_version_is_given_the_parameters_as_they_begin() -> None:
    assert failures(LearnedSlow, ["equals_its_slow_version"]) == {}


def test_a_weighted_mean_keeps_the_promise_of_its_reduction() -> None:
    suite = suite_of("loss", "weighted", made_registry())
    assert failures(suite, ["its_reduction_is_that_of_its_options"]) == {}


def test_a_variant_that_forgets_its_state_is_found() -> None:
    suite = suite_of("negatives", "forgets-state", made_registry())
    values = {"variants": ({"level": "sentence"},)}
    varied = type("Varied", (suite,), values)
    found = failures(varied, ["its_variants_keep_them_too"])
    assert "its_state_round_trips: a resume after step 2" in found["its_variants_keep_them_too"]


def test_pytest_says_what_was_promised_and_found() -> None:
    suite = suite_of("loss", "wants-four", made_registry())
    with pytest.raises(AssertionError) as raised:
        suite().test_promises()
    first, promised, found = str(raised.value).split("\n")[:3]
    assert first == "takes_any_batch"
    assert promised.strip().startswith("promised: Value and gradients are finite for one")
    assert found.strip().startswith("found: IndexError: index")

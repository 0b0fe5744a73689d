"""Installed parts train together, or the composer says why not: several a run, each pair in one."""

import os
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import pytest
import torch
from cse_testkit import pairs
from cse_testkit.completion import Found, compose_together, path_of, train_together

from cse_core.errors import CseError
from cse_core.records import Kind
from tests.pairwise.covering import covering

PARTS_OF_A_RUN = 40
MAX_RUNS = 36
"""A run has one row pooler and one slicer, and each pair of them needs a run: nine and two take as
many as this."""
OPTIONS: dict[tuple[Kind, str], dict[str, Any]] = {("positives", "mined"): {"margin": -1.0}}
"""An encoder that was never trained has no text far enough below a positive."""
ALLOWED = float(os.environ.get("CSE_PAIR_SECONDS", "0.5"))
"""Seconds of CPU that a pair may take, so that the table stays affordable as plugins come."""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def refusal(parts: Sequence[Found]) -> str | None:
    """Return the composer's line where it refuses some parts together."""
    try:
        compose_together(parts, options=OPTIONS)
    except CseError as error:
        return error.line()
    return None


def check_reason(reason: str) -> None:
    """Each problem has a line of its own, with what to do."""
    assert reason.strip()
    for line in reason.strip().splitlines():
        assert ";" in line, f"no hint what to do: {line}"


def test_every_pair_trains_in_some_run_or_is_refused_with_a_reason() -> None:
    answers: dict[frozenset[Found], str | None] = {}

    def fits(parts: Sequence[Found]) -> bool:
        if (key := frozenset(parts)) not in answers:
            answers[key] = refusal(parts)
        return answers[key] is None

    runs = covering(pairs(), fits, PARTS_OF_A_RUN)
    met = {frozenset(pair) for run in runs for pair in combinations(run, 2)}
    for pair in {frozenset(each) for each in pairs()} - met:
        assert (reason := answers[pair]) is not None, [path_of(part) for part in pair]
        check_reason(reason)
    assert len(runs) <= MAX_RUNS
    wrong = [line for run in runs for line in failures(run)]
    assert not wrong, "\n".join(wrong)


def failures(run: Sequence[Found]) -> list[str]:
    """Return what is wrong with a run; one that is refused is cut until each pair was asked."""
    try:
        train_together(run, options=OPTIONS)
    except CseError as error:
        check_reason(error.line())
        cut = [run[start::4] for start in range(4)] if len(run) > 2 else []
        smaller = [[*one, *other] for one, other in combinations(cut, 2)]
        return [line for each in smaller if len(each) > 1 for line in failures(each)]
    except Exception as error:
        alone = [line for pair in combinations(run, 2) if (line := failure(*pair))]
        together = f"{', '.join(map(path_of, run))}: {type(error).__name__}: {error}"
        return alone or [f"{together}; each pair of them trains"]
    return []


def failure(*pair: Found) -> str | None:
    """Return what is wrong with a pair that is neither trained nor refused."""
    try:
        train_together(pair, options=OPTIONS)
    except CseError as error:
        check_reason(error.line())
    except Exception as error:
        return f"{' + '.join(map(path_of, pair))}: {type(error).__name__}: {error}"
    return None


@pytest.mark.slow
def test_every_pair_trains_by_itself_or_is_refused_with_a_reason() -> None:
    wrong = []
    for pair in pairs():
        took = ALLOWED
        for _ in range(2):  # the first pair with a part also pays for its imports
            if took >= ALLOWED:
                began = time.process_time()
                line = failure(*pair)
                took = time.process_time() - began
        slow = f"{' + '.join(map(path_of, pair))} took {took:.2f} s"
        wrong += [line] if line else [slow] if took >= ALLOWED else []
    assert not wrong, "\n".join(wrong)

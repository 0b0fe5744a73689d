"""``python -m tests.reliability [TABLE ...]`` runs tables of cases and prints the counts.

A table is one of ``inputs/*.toml``, or ``damages``, ``kills``, ``machine``, ``terminal`` or
``neighbours``; by default all are run. ``--only TEXT`` runs the cases with this text in their
label.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any

from tests.reliability import damages, kills, machine, neighbours, terminal
from tests.reliability.inputs import input_cases
from tests.reliability.inputs import tried as input_tried
from tests.reliability.outcomes import GOOD, Answer, Outcome, counted
from tests.reliability.server import Server, the_server

Tried = tuple[Outcome, Answer, str]
OWN: dict[str, tuple[Callable[[Server], Iterable[Any]], Callable[[Any, Server], Tried]]] = {
    "damages": (lambda _: damages.damages(), damages.tried),
    "kills": (kills.kills, kills.tried),
    "machine": (lambda _: machine.troubles(), machine.tried),
    "terminal": (lambda _: terminal.terminal_cases(), terminal.tried),
    "neighbours": (lambda _: neighbours.neighbours(), neighbours.tried),
}


def run(
    cases: Iterable[Any], tried: Callable[[Any, Server], Tried], server: Server
) -> list[Outcome]:
    """Run cases and print those that are not as expected."""
    outcomes = []
    for case in cases:
        outcome, answer, printed = tried(case, server)
        outcomes.append(outcome)
        if outcome not in GOOD:
            wanted = getattr(case, "expect", "")
            print(f"{outcome.upper()} {case.label}\n  wanted {wanted}: {printed}; exit code "
                  f"{answer.code} after {answer.seconds:.1f} s", flush=True)  # fmt: skip
            for line in (answer.out + answer.err).splitlines()[-6:]:
                print(f"  | {line[:300]}")
    return outcomes


def main(words: list[str]) -> int:
    """Run tables, print what is not as expected and the counts; return 1 where anything is."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--only", default="")
    chosen = parser.parse_args(words)
    server, outcomes = the_server(), []
    inputs = [name for name in chosen.tables if name not in OWN]
    if inputs or not chosen.tables:
        found = [case for case in input_cases(*inputs) if chosen.only in case.label]
        outcomes += run(found, lambda case, server: (*input_tried(case, server), str(case.says)),
                        server)  # fmt: skip
        print(f"inputs: {counted(outcomes)}", flush=True)
    for name in chosen.tables or OWN:
        if name in OWN:
            cases, tried = OWN[name]
            own = run((c for c in cases(server) if chosen.only in c.label), tried, server)
            print(f"{name}: {counted(own)}", flush=True)
            outcomes += own
    print(counted(outcomes))
    return int(any(outcome not in GOOD for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m tests.reliability [TABLE ...]`` runs tables of cases and prints the counts."""

from __future__ import annotations

import sys

from tests.reliability.inputs import input_cases, tried
from tests.reliability.outcomes import GOOD, counted
from tests.reliability.server import Server


def main(tables: list[str]) -> int:
    """Run tables, print what is not as expected and the counts; return 1 where anything is."""
    server, outcomes = Server(), []
    for case in input_cases(*tables):
        outcome, answer = tried(case, server)
        outcomes.append(outcome)
        if outcome not in GOOD:
            print(f"{outcome.upper()} {case.label}\n  wanted {case.expect} {list(case.says)}, "
                  f"exit code {answer.code} after {answer.seconds:.1f} s")  # fmt: skip
            for line in (answer.out + answer.err).splitlines()[-6:]:
                print(f"  | {line[:300]}")
    server.close()
    print(counted(outcomes))
    return int(any(outcome not in GOOD for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

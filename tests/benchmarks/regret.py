"""What ``cse tune`` loses by racing in place of training every composition in full.

    python -m tests.benchmarks.regret RACE … [--workers N]

RACE is the folder of a race that has ended. Every composition of its space is trained for the
steps of the winner with its seed, in RACE/all, and scored by the titles that judged. Regret is how
far the winner is below the best of them, in points; beside it is that of the composition that the
race's titles put first when all are trained in full. The share is of steps, without starts and
scores.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(words: Sequence[str] | None = None) -> None:
    """Train what the race left out, and print a table."""
    from cse_tune.tuning import Race

    from cse_cli.api import Installed, read_json

    raw = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser("tests.benchmarks.regret", description=__doc__,
                                   formatter_class=raw)  # fmt: skip
    made.add_argument("race", nargs="+", type=Path)
    made.add_argument("--workers", type=int, default=1)
    options, plugins = made.parse_args(words), Installed()
    print("| | compositions | steps | share of steps | winner | its place | regret "
          "| of all in full |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for folder in options.race:
        state: dict[str, Any] = read_json(folder / "tune.json", {}, "finish the race") or {}
        given, result = state["given"], state["result"]
        place = folder / "all"  # the race has deleted models of its own runs
        if not place.is_dir():
            shutil.copytree(folder, place, ignore=shutil.ignore_patterns("studies", "model", "all"))
        race = Race(plugins, [], given["model"], given["minutes"], place, workers=options.workers)
        scores: dict[str, dict[str, float]] = {}
        for questions in ("race", "judge"):
            study = race._study("space", questions=questions, steps=result["steps"], leave_out=True)
            labels = {point["number"]: point["label"] for point in study["points"]}
            scores[questions] = {
                labels[number]: 100 * float(gains.mean())
                for (number, _), gains in race._gains(study).items()
            }
        race._drop_models(study)
        judged, winner = scores["judge"], result["winner"]
        order = sorted(judged, key=lambda label: -judged[label])
        by_race = max(scores["race"], key=lambda label: scores["race"][label])
        spent = sum(steps for entry in result["race"] for steps, _ in entry["scores"])
        share = spent / (len(judged) * result["steps"])
        print(f"| {folder.name} | {len(judged)} | {result['steps']} | {share:.0%} | {winner} "
              f"| {order.index(winner) + 1} | {judged[order[0]] - judged[winner]:.2f} "
              f"| {by_race}, {judged[order[0]] - judged[by_race]:.2f} |", flush=True)  # fmt: skip
        for label in order:
            print(f"<!-- {label}: {judged[label]:.2f}; race {scores['race'][label]:.2f} -->")


if __name__ == "__main__":
    main()

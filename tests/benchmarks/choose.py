"""How well ``cse choose`` ranks encoders: beside what judged queries say of them.

    python -m tests.benchmarks.choose --collection DIR … --model NAME … [--sts FILE …] --to FILE

For each collection of judged queries, ``cse choose`` compares the encoders on its documents, and
``cse eval`` by its queries. Printed are Spearman's correlation of both over the encoders, the
judged nDCG@10 that is lost by taking the encoder that finds most (regret), and the same of the
encoder that is best by the mean of the graded pairs, as a public average would have it.
What is scored is written to FILE as it comes, and is not scored again.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

Scores = Mapping[str, float]
"""By encoder."""


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser(
        "tests.benchmarks.choose", description=__doc__, formatter_class=raw
    )
    made.add_argument("--collection", action="append", default=[], type=Path, required=True)
    made.add_argument("--model", action="append", default=[], required=True, help="NAME=FOLDER")
    made.add_argument("--sts", action="append", default=[], help="graded pairs")
    made.add_argument("--to", type=Path, required=True)
    made.add_argument("--max-length", type=int, default=256, help="tokens; 256 by default")
    made.add_argument("--precision", help="of all; by default those of the commands")
    return made.parse_args(words)


class Kept:
    """JSON values by name, in a file that grows with every one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.values: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}

    def __call__(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.values:
            self.values[name] = make()
            self.file.write_text(json.dumps(self.values))
        return self.values[name]


def first(scores: Scores) -> str:
    return max(scores, key=lambda name: scores[name])


def judge(chosen: Scores, judged: Scores) -> tuple[float, float]:
    """Return the rank correlation, and the regret of the first choice in points."""
    order = [*judged]
    correlation = spearmanr([chosen[n] for n in order], [judged[n] for n in order]).statistic
    return float(correlation), max(judged.values()) - judged[first(chosen)]


def main(words: Sequence[str] | None = None) -> None:
    """Choose, evaluate, and print a table."""
    from cse_cli.api import Installed

    options = arguments(words)
    plugins, kept = Installed(), Kept(options.to)
    run = plugins.commands.function
    models = dict(name.split("=", 1) for name in options.model)
    given = {"max_length": options.max_length}
    given |= {"precision": options.precision} if options.precision else {}
    average: dict[str, float] = {}
    scored = partial(run("eval"), plugins, quiet=True, **given)
    for name, folder in models.items() if options.sts else ():
        made = kept(f"{name} pairs", partial(scored, [folder], pairs=options.sts))["results"]
        average[name] = sum(r["spearman"] for r in made.values()) / len(made)
    print("| | decides | encoders | rank correlation | first choice | regret | of the average |")
    print("|---|---|---|---|---|---|---|")
    for collection in options.collection:
        texts, queries = [str(next(collection.glob("corpus.jsonl*")))], [str(collection)]
        chosen: dict[str, float] = {}
        judged: dict[str, float] = {}
        for name, folder in models.items():
            place = f"{name} {collection.name}"
            choose = partial(run("choose"), plugins, texts, [folder], **given)
            made = kept(f"{place} chosen", choose)
            decides, chosen[name] = made["decides"], made["models"][0]["scores"][made["decides"]]
            made = kept(f"{place} judged", partial(scored, [folder], collections=queries))
            (scores,) = made["results"].values()
            judged[name] = scores["ndcg@10"]
        correlation, regret = judge(chosen, judged)
        beside = ""
        if average:
            also = judge(average, judged)
            beside = f"{also[0]:.2f}; {first(average)}, {also[1]:.2f}"
        print(f"| {collection.name} | {decides} | {len(models)} | {correlation:.2f} "
              f"| {first(chosen)} | {regret:.2f} | {beside} |", flush=True)  # fmt: skip
        for name in sorted(judged, key=lambda name: -judged[name]):
            print(f"<!-- {name}: {chosen[name]:.2f}; judged {judged[name]:.2f} -->")


if __name__ == "__main__":
    main()

"""Seconds until `cse --help` and `cse list-plugins` are done, and until the peer is imported.

python -m tests.benchmarks.startup [--repeats 10]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser

CSE = str(Path(sys.executable).with_name("cse"))
COMMANDS = {
    "cse --help": (CSE, "--help"),
    "cse list-plugins": (CSE, "list-plugins"),
    "import sentence_transformers": (sys.executable, "-c", "import sentence_transformers"),
    "python without anything": (sys.executable, "-c", "pass"),
}


def seconds(words: Sequence[str]) -> float:
    """Return how long a command takes."""
    began = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    return time.perf_counter() - began


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.set_defaults(repeats=10)
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    from cse_cli.plugins.manager import load_plugins

    options = arguments()
    report = Report("startup")
    found = alternate(
        {k: partial(seconds, words) for k, words in COMMANDS.items()}, options.repeats
    )
    plugins = len({info.distribution for info in load_plugins().infos})
    report.say(f"{options.repeats} starts of each in turn, {plugins} plugins installed.")
    report.add("help", found["cse --help"])
    report.add("list", found["cse list-plugins"])
    peer = found["import sentence_transformers"]
    report.add("import", ratios(found["cse list-plugins"], peer))
    lines = [[name, spread(values, ".3f")] for name, values in found.items()]
    report.table("Start-up", ["", "s"], lines)
    report.finish(options.json)


if __name__ == "__main__":
    main()

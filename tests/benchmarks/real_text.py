"""Train on real sentences with several seeds, and score STS-B before and after.

Each run is a `cse train` and a `cse eval`; a line of results.jsonl is written as each ends, and
what is there already is not run again.

    python -m tests.benchmarks.real_text --texts wiki.txt.gz --sts DIR --out runs/real-text \
        [--seeds 1,2,3] [--name lr3e-5 --set train.lr=3e-5 ...]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CSE = [str(Path(sys.executable).with_name("cse"))]
BF16_PRODUCTS = [sys.executable, str(Path(__file__).with_name("bf16_products.py"))]
SETS = ("stsb.dev", "stsb.test")


def command(*arguments: str, cse: list[str] = CSE) -> dict[str, Any]:
    """Run a cse command with --json and return what it prints."""
    done = subprocess.run([*cse, *arguments, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def scores(model: str, sts: str) -> dict[str, float]:
    """Return Spearman x100 of a model on the suite's STS-B files."""
    found = command("eval", model, "--suite", "sts", "--data-dir", sts, "--no-baselines")
    return {name: found["results"][name]["spearman"] for name in SETS}


def main() -> None:
    """Run what is missing, and print means and deviations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", required=True)
    parser.add_argument(
        "--sts", required=True, help="folder of stsb.dev.tsv.gz and stsb.test.tsv.gz"
    )
    parser.add_argument("--out", default="runs/real-text")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--name", default="simcse")
    parser.add_argument("--recipe", default="simcse", help="none: parts alone, after --")
    parser.add_argument("--model", default="starter")
    parser.add_argument("--rows", default="64000")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--dev", default="stsb", help="stsb: STS-B dev chooses; none: the last")
    parser.add_argument(
        "--bf16-products",
        action="store_true",
        help="train through bf16_products.py, where the processor has no bf16 instructions",
    )
    parser.add_argument("extra", nargs="*", help="more words for cse train, after --")
    options = parser.parse_args()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    book = out / "results.jsonl"
    lines = [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []
    dev = f"{options.sts}/stsb.dev.tsv.gz" if options.dev == "stsb" else "none"
    for seed in options.seeds.split(","):
        if any(line["name"] == options.name and line["seed"] == int(seed) for line in lines):
            continue
        run = out / f"{options.name}-{seed}"
        recipe = [] if options.recipe == "none" else ["--recipe", options.recipe]
        words = ["train", *recipe, "--model", options.model]
        words += ["--data", options.texts, "--dev", dev, "--seed", seed, "--out", str(run)]
        words += ["--set", f"data.limit={options.rows}", *options.extra]
        for setting in options.set:
            words += ["--set", setting]
        began = time.time()
        command(
            *(["train", "--resume", str(run)] if (run / "run.toml").exists() else words),
            cse=BF16_PRODUCTS if options.bf16_products else CSE,
        )
        line = {
            "name": options.name,
            "seed": int(seed),
            "seconds": round(time.time() - began, 1),
            "command": " ".join(["cse", *words]),
            **scores(str(run), options.sts),
            "result": json.loads((run / "result.json").read_text()),
        }
        lines.append(line)
        with book.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print({key: line[key] for key in ("name", "seed", "seconds", *SETS)}, flush=True)
    for name in dict.fromkeys(line["name"] for line in lines):
        of_name = [line for line in lines if line["name"] == name]
        for each in SETS:
            values = [line[each] for line in of_name]
            spread = statistics.stdev(values) if len(values) > 1 else float("nan")
            print(
                f"{name:24} {each:10} {statistics.mean(values):6.2f} ± {spread:.2f} ({len(values)})"
            )


if __name__ == "__main__":
    main()

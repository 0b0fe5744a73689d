"""Run the checks that need a GPU, and write one JSON and one page.

    python -m tests.gpu [SECTION ...] [--device cuda] [--minutes 9] [--render]

Each section is a process of its own with a time of its own: one that is cut or that breaks the GPU
loses nothing but what it had not yet written. On a CPU everything is small, and shows that it runs.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
from typing import Any

import torch

from tests.benchmarks.report import ROOT, code, machine, table
from tests.gpu import decoders, kernels, launches, parts, runs
from tests.gpu.setting import Section, Setting

SECTIONS = (
    Section("kernels", "Attention for rows of any length", 40, kernels.run),
    Section("parts", "Every part, and what waits for the device", 110, parts.run),
    Section("decoders", "Decoders", 90, decoders.run),
    Section("resume", "Resumed runs", 110, runs.resumed),
    Section("launches", "Launches of a step", 90, launches.launches),
    Section("speed", "Speed", 160, runs.speed),
)
"""In the order in which they run."""
OUT, PAGE = ROOT / "runs/gpu", ROOT / "docs/gpu.md"
HEAD = """# On a GPU

<!-- python -m tests.gpu writes this page -->

`make gpu` runs what only a GPU can show, within ten minutes and without a network, and writes this
page from `runs/gpu/results.json`. A section that runs longer than its share of the time is cut.
`make gpu WHEELS=FOLDER` installs what the machine lacks from a folder that
`make gpu-wheels WHEELS=FOLDER` has filled elsewhere. `make gpu SECTIONS="kernels parts"` runs some
sections alone, `CSE_GPU_DEVICE=cpu make gpu` all of them in a small form on the processor.
"""
MANY = ("losses", "waits", "values")
"""Checks of which there are many: those that hold are counted and not listed."""


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    raw, names = argparse.RawDescriptionHelpFormatter, [section.name for section in SECTIONS]
    parser = argparse.ArgumentParser("tests.gpu", description=__doc__, formatter_class=raw)
    parser.add_argument("sections", nargs="*", help=f"{', '.join(names)}; all by default")
    device = os.environ.get("CSE_GPU_DEVICE", "cuda")
    parser.add_argument("--device", choices=("cuda", "cpu"), default=device)
    parser.add_argument("--minutes", type=float, default=9.0, help="for all of it")
    parser.add_argument("--render", action="store_true", help="write the page alone")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if unknown := {*options.sections} - {*names}:
        parser.error(f"{', '.join(unknown)}: there are {', '.join(names)}")
    return options


def main(words: list[str] | None = None) -> int:
    """Run the sections; return 1 if a check failed, 2 without such a device."""
    options = arguments(words)
    chosen = [s for s in SECTIONS if not options.sections or s.name in options.sections]
    until = time.monotonic() + 60 * options.minutes
    if options.child:
        torch.set_num_threads(1 if options.device == "cpu" else torch.get_num_threads())
        chosen[0].run(Setting(options.device))
        return 0
    why = no_gpu() if options.device == "cuda" and not options.render else None
    if why is not None:
        print(f"make gpu: {why}", file=sys.stderr)
        return 2
    OUT.mkdir(parents=True, exist_ok=True)
    book, target = OUT / "results.json", PAGE if options.device == "cuda" else OUT / "gpu.md"
    results = json.loads(book.read_text(encoding="utf-8")) if book.exists() else {}
    if not options.render:
        kept = results.get("sections", {}) if options.sections else {}
        results = {"about": about(options.device), "sections": kept}
        for number, section in enumerate(chosen):
            share = section.seconds / sum(each.seconds for each in chosen[number:])
            seconds = (until - time.monotonic()) * share
            print(f"\n== {section.name}: at most {seconds:.0f} s", flush=True)
            found = measure(section, options.device, seconds)
            results["sections"][section.name] = {**found, "code": results["about"]["code"]}
            book.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")
    target.write_text(page(results), encoding="utf-8")
    bad = failures(results)
    print(f"\n{book} and {target} are written; {len(bad)} checks failed")
    for line in bad:
        print(json.dumps(line, ensure_ascii=False))
    return 1 if bad else 0


def measure(section: Section, device: str, seconds: float) -> dict[str, Any]:
    """Run a section in a process of its own, and return what it wrote until it ended or was cut."""
    began, failed = time.monotonic(), None
    command = [sys.executable, "-m", "tests.gpu", section.name, "--device", device, "--child"]
    # cuBLAS reads its workspace when it begins: only with one of fixed size it repeats its sums.
    defaults = {"CUDA_VISIBLE_DEVICES": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**defaults, **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        done = subprocess.run(command, capture_output=True, env=env, cwd=ROOT, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        cut, out = True, error.stdout or b""
    else:
        cut, out = False, done.stdout
        if done.returncode:
            said = done.stderr.decode(errors="replace")[-1500:].rstrip()
            failed = f"{said}\nexit status {done.returncode}".lstrip()
    whole = out[: out.rfind(b"\n") + 1].decode(errors="replace").splitlines()
    found = [json.loads(line) for line in whole if line.startswith('{"check"')]
    took = round(time.monotonic() - began, 1)
    return {"seconds": took, "cut": cut, "failed": failed, "found": found}


def no_gpu() -> str | None:
    """Return why there is nothing to run on; None where there is a GPU that torch can use."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    return None if torch.cuda.is_available() else "torch finds no GPU here"


def about(device: str) -> dict[str, Any]:
    """Return what the results were found on."""
    gpu = {"GPU": "none: everything is small"}
    if device == "cuda":
        facts = torch.cuda.get_device_properties(0)
        size = f"{facts.total_memory / 2**30:.0f} GiB"
        gpu = {"GPU": f"{facts.name}, {size}", "capability": f"{facts.major}.{facts.minor}"}
    date = time.strftime("%Y-%m-%d", time.gmtime())
    return {**gpu, "cuda": torch.version.cuda, **machine(), "code": code(), "date": date}


def failures(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings that are not as they must be, and the sections that broke."""
    bad = []
    for name, section in results.get("sections", {}).items():
        if section["failed"]:
            bad.append({"section": name, "failed": section["failed"][-300:]})
        bad += [{"section": name, **line} for line in section["found"] if line["ok"] is False]
    return bad


def page(results: dict[str, Any]) -> str:
    about = [[name, str(value)] for name, value in results.get("about", {}).items()]
    parts = [HEAD, table(("", ""), about) + "\n"]
    parts += [_section(each, results.get("sections", {}).get(each.name)) for each in SECTIONS]
    return "\n".join(parts)


def _section(section: Section, result: dict[str, Any] | None) -> str:
    head, what = f"## {section.title}\n", f"{inspect.getdoc(section.run)}\n"
    if result is None:
        return "\n".join([head, f"{what.partition(chr(10))[0]}\n"])
    lines = [head, what]
    checks = [line["ok"] for line in result["found"] if line["ok"] is not None]
    held = f"{sum(checks)} of {len(checks)} checks hold; " if checks else ""
    facts = f"{held}{result['seconds']} seconds"
    lines.append(f"{facts}{', cut there' * result['cut']}; code {result['code']}.\n")
    if result["failed"]:
        lines.append(f"It broke:\n\n```\n{result['failed'][-800:]}\n```\n")
    for kind in dict.fromkeys(line["check"] for line in result["found"]):
        rows = [line for line in result["found"] if line["check"] == kind]
        rows = [line for line in rows if kind not in MANY or not line["ok"]]
        idle = {"check"} if any(row["ok"] is not None for row in rows) else {"check", "ok"}
        names = list(dict.fromkeys(name for row in rows for name in row if name not in idle))
        if rows:
            cells = [[_cell(row.get(name)) for name in names] for row in rows]
            head = [name.replace("_", " ") for name in names]
            lines += [f"### {kind}\n", table(head, cells) + "\n"]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value).replace("\n", " ").replace("<", "&lt;")


if __name__ == "__main__":
    sys.exit(main())

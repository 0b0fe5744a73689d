"""Run the checks that need a GPU, and write one JSON and one page.

    python -m tests.gpu [SECTION ...] [--device cuda] [--minutes 9] [--out FOLDER] [--page FILE]

Each section is a process of its own with a time of its own: one that is cut or that breaks the GPU
loses nothing but what it had not yet written. On a CPU everything is small, and shows that it runs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.command_line import SectionParser
from tests.benchmarks.machine import code, machine
from tests.benchmarks.resident import ROOT
from tests.gpu.page import page
from tests.gpu.sections import SECTIONS, Section

OUT = ROOT / "runs/gpu"
PAGE = ROOT / "docs/gpu.md"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = SectionParser("tests.gpu", __doc__, [section.name for section in SECTIONS], OUT)
    device = os.environ.get("CSE_GPU_DEVICE", "cuda")
    made.add_argument("--device", choices=("cuda", "cpu"), default=device)
    made.add_argument("--minutes", type=float, default=9.0, help="for all of it")
    made.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = made.read(words)
    if options.page is None:
        options.page = PAGE if options.device == "cuda" else options.out / "gpu.md"
    return options


def main(words: list[str] | None = None) -> int:
    """Run the sections; return 1 if a check failed, 2 without such a device."""
    began = time.monotonic()
    options = arguments(words)
    if options.child is not None:
        child(options)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    book = options.out / "results.json"
    results = read(book)
    if not options.render:
        if options.device == "cuda" and (why := no_gpu()):
            print(f"make gpu: {why}", file=sys.stderr)
            return 2
        kept = results.get("sections", {}) if options.sections else {}
        results = {"about": about(options.device), "sections": kept}
        wanted = [s for s in SECTIONS if not options.sections or s.name in options.sections]
        until = began + 60 * options.minutes
        for number, section in enumerate(wanted):
            left = until - time.monotonic()
            share = section.seconds / sum(each.seconds for each in wanted[number:])
            print(f"\n== {section.name}: at most {left * share:.0f} s", flush=True)
            found = measure(section, options.device, left * share, options.out)
            results["sections"][section.name] = {**found, "code": results["about"]["code"]}
            write(book, results)
            options.page.write_text(page(results), encoding="utf-8")
    options.page.write_text(page(results), encoding="utf-8")
    bad = failures(results)
    print(f"\n{book} and {options.page} are written; {len(bad)} checks failed")
    for line in bad:
        print(json.dumps(line, ensure_ascii=False))
    return 1 if bad else 0


def measure(section: Section, device: str, seconds: float, folder: Path) -> dict[str, Any]:
    """Run a section in a process of its own, and return what it wrote until it ended or was cut."""
    lines = folder / f"{section.name}.jsonl"
    lines.unlink(missing_ok=True)
    began = time.monotonic()
    command = [
        sys.executable, "-m", "tests.gpu", section.name, "--device", device, "--child", str(lines),
        "--minutes", str(max(seconds - 3, 1) / 60),
    ]  # fmt: skip
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONFAULTHANDLER": "1"}
    if device == "cuda":
        env.setdefault("CUDA_VISIBLE_DEVICES", "0")
    log = folder / f"{section.name}.log"
    cut, failed = False, None
    with log.open("w", encoding="utf-8") as said:
        try:
            done = subprocess.run(
                command, check=False, env=env, stdout=said, stderr=said, cwd=ROOT, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            cut = True
        else:
            if done.returncode:
                # A signal leaves no traceback behind, and may leave nothing at all.
                said_last = log.read_text(encoding="utf-8", errors="replace")[-1500:].rstrip()
                failed = f"{said_last}\nexit status {done.returncode}".lstrip()
    found = [json.loads(line) for line in _whole_lines(lines)]
    took = round(time.monotonic() - began, 1)
    cut_at = ", cut" * cut
    print(f"{len(found)} findings in {took} s{cut_at}{', failed' if failed else ''}", flush=True)
    return {"seconds": took, "cut": cut, "failed": failed, "found": found}


def child(options: argparse.Namespace) -> None:
    """Run one section here."""
    from tests.gpu.setting import Setting

    (name,) = options.sections
    if options.device == "cpu":
        import torch

        torch.set_num_threads(1)
    until = time.monotonic() + 60 * options.minutes
    module = importlib.import_module(f"tests.gpu.{name}")
    module.run(Setting(options.device, until, options.child))


def no_gpu() -> str | None:
    """Return why there is nothing to run on; None where there is a GPU that torch can use."""
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return "torch finds no GPU here"
    return None


def about(device: str) -> dict[str, Any]:
    """Return what the results were found on."""
    import torch

    found: dict[str, Any] = {
        "device": device,
        "machine": machine(),
        "code": code(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    if device == "cuda":
        facts = torch.cuda.get_device_properties(0)
        found["gpu"] = {
            "GPU": facts.name,
            "capability": f"{facts.major}.{facts.minor}",
            "memory of the GPU": f"{facts.total_memory / 2**30:.0f} GiB",
            "cuda": str(torch.version.cuda),
        }
    return found


def failures(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings that are not as they must be, and the sections that broke."""
    bad = []
    for name, section in results.get("sections", {}).items():
        if section["failed"]:
            bad.append({"section": name, "failed": section["failed"][-300:]})
        # A kernel that is not chosen may fail: it is tested to see why it is not.
        bad += [
            {"section": name, **line}
            for line in section["found"]
            if line["ok"] is False and line.get("chosen", True)
        ]
    return bad


def read(book: Path) -> dict[str, Any]:
    """Return the results so far."""
    if not book.exists():
        return {}
    found: dict[str, Any] = json.loads(book.read_text(encoding="utf-8"))
    return found


def write(book: Path, results: dict[str, Any]) -> None:
    """Write the results, whole or not at all."""
    beside = book.with_suffix(".new")
    beside.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")
    beside.replace(book)


def _whole_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


if __name__ == "__main__":
    sys.exit(main())

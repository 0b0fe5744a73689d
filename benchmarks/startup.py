"""Seconds until `cse --help` and `cse list-plugins` are done: median of ten.

python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

CSE = str(Path(sys.executable).with_name("cse"))


def seconds(*arguments: str) -> float:
    """Return how long a command takes."""
    began = time.perf_counter()
    subprocess.run([CSE, *arguments], check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    for arguments in (("--help",), ("list-plugins",)):
        seconds(*arguments)
        times = [seconds(*arguments) for _ in range(10)]
        name = " ".join(("cse", *arguments))
        print(f"{name:20} {statistics.median(times):.3f} s [{min(times):.3f}-{max(times):.3f}]")


if __name__ == "__main__":
    main()

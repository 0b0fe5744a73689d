"""Where a section runs, how large, for how long, and the file that takes what it finds."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch


@dataclass
class Setting:
    """What a section is given.

    Attributes:
        device: ``cuda``, or ``cpu``, where everything is small and only shows that it runs.
        until: When its time is over, by ``time.monotonic()``.
        out: File that takes a line of JSON for each finding, as soon as it is there.
        found: What was written.
    """

    device: str
    until: float = math.inf
    out: Path | None = None
    found: list[dict[str, Any]] = field(default_factory=list)

    @property
    def small(self) -> bool:
        """Return whether sizes are those of a trial."""
        return self.device == "cpu"

    @property
    def left(self) -> float:
        """Return the seconds left."""
        return self.until - time.monotonic()

    def keep(self, check: str, ok: bool | None = None, **facts: Any) -> None:
        """Write a finding down.

        Args:
            check: What was done.
            ok: Whether it is as it must be; None for a mere number.
            facts: JSON values.
        """
        line = {"check": check, "ok": ok, **facts}
        self.found.append(line)
        print(json.dumps(line, ensure_ascii=False), flush=True)
        if self.out is not None:
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    @contextmanager
    def trying(self, check: str, **facts: Any) -> Iterator[None]:
        """Write an error down instead of raising it, so that the next check runs.

        Memory that is full is a fact, no failure.
        """
        try:
            yield
        except torch.OutOfMemoryError:
            self.keep(check, None, **facts, left_out="out of memory")
        except Exception as error:
            self.keep(check, False, **facts, error=f"{type(error).__name__}: {error}"[:600])
        finally:
            if self.device != "cpu":
                gc.collect()  # models stand in cycles, which keep them until somebody collects
                torch.cuda.empty_cache()

    def wait(self) -> None:
        """Wait until the device has done what it was given."""
        if self.device != "cpu":
            torch.cuda.synchronize()

    def seconds(self, work: Callable[[], object], repeats: int = 5, warm: int = 2) -> float:
        """Return the least seconds of some repeats of a work, the device's included."""
        if self.small:
            repeats, warm = 1, 1
        least = math.inf
        for turn in range(warm + repeats):
            self.wait()
            began = time.perf_counter()
            work()
            self.wait()
            if turn >= warm:
                least = min(least, time.perf_counter() - began)
        return least


def exact() -> None:
    """Compute fp32 products in fp32, never in TF32."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False

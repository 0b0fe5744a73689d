"""A section, where it runs, and what it finds."""

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch


@dataclass
class Setting:
    """The device, ``cpu`` for a small trial, and a section's findings, printed as they come."""

    device: str
    found: list[dict[str, Any]] = field(default_factory=list)

    @property
    def small(self) -> bool:
        """Return whether sizes are those of a trial."""
        return self.device == "cpu"

    def keep(self, check: str, ok: bool | None = None, **facts: Any) -> None:
        """Write a finding of JSON values down; ``ok`` is None for a mere number."""
        line = {"check": check, "ok": ok, **facts}
        self.found.append(line)
        print(json.dumps(line), flush=True)

    @contextmanager
    def trying(self, check: str, **facts: Any) -> Iterator[None]:
        """Write an error down, so that the next check runs; full memory is a fact."""
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


class Section(NamedTuple):
    """The docstring of ``run`` is its text on the page, ``seconds`` its share of ten minutes."""

    name: str
    title: str
    seconds: int
    run: Callable[[Setting], None]


def exact() -> None:
    """Compute fp32 products in fp32, never in TF32."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False

"""The command ``cse static``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cse_cli.api import ModelArgument, echo, installed


def static(
    context: typer.Context,
    model: ModelArgument,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write.")],
    dimension: Annotated[
        int, typer.Option(min=1, metavar="N", help="Principal components to keep.")
    ] = 256,
    smoothing: Annotated[
        float, typer.Option(min=0.0, metavar="A", help="Weight of frequent tokens: a / (a + p).")
    ] = 1e-4,
) -> None:
    """Make a static model of a transformer: its token vectors, without context."""
    from cse_static.distil import distil

    plugins = installed(context)
    folder = distil(plugins, model, out, dimension=dimension, smoothing=smoothing)
    echo(f"{folder}: train it with cse train --model {folder}, or encode with cse encode {folder}")

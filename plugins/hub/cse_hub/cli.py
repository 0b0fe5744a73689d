"""``cse push``: a run's model to a repository of the hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse_cli.terminal.console import echo, say_json, warn

if TYPE_CHECKING:
    from cse_hub.push import Package


def push(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A finished run, or the folder of a saved model.")
    ],
    name: Annotated[
        str, typer.Argument(metavar="OWNER/NAME", help="The repository: who owns it, what it is.")
    ],
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence",
            "--license",
            metavar="ID",
            help="The licence that the card names, such as apache-2.0.",
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Make a repository that only its owner sees.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Add a commit to a repository that is there already.")
    ] = False,
    message: Annotated[
        str, typer.Option("--message", metavar="TEXT", help="The message of the commit.")
    ] = "A model trained with cse",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent, and send nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Send a run's model, card and recipe to a repository of the Hugging Face hub."""
    from cse_hub.push import Package, check_name, send

    check_name(name)
    package = Package.of(run, name, licence)
    facts = {"repository": name, "files": package.sizes(), "licence": package.licence}
    if dry_run:
        if json:
            say_json({**facts, "url": None})
            return
        echo(f"would be sent to {name}:")
        for file, size in package.sizes().items():
            echo(f"  {file}  {_in_words(size)}")
        _warn_of_licence(package, "--licence ID")
        return
    url = send(package, private=private, update=update, message=message)
    if json:
        say_json({**facts, "url": url})
        return
    _warn_of_licence(package, "push again with --update --licence ID")
    echo(f"pushed {len(package.sizes())} files, {_in_words(sum(package.sizes().values()))}: {url}")
    echo("next:")
    echo(f"  hf download {name} --local-dir MODEL && cse encode MODEL --text 'a sentence'")
    if (package.model / "modules.json").is_file():
        echo(f'  SentenceTransformer("{name}").encode(["a sentence"]) in Python')


def _warn_of_licence(package: Package, how: str) -> None:
    if package.licence is None:
        what = "the card names no licence, and without one others may not use the model"
        warn(f"{what}; to name one: {how}")


def _in_words(size: int) -> str:
    for unit, count in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= count:
            return f"{size / count:.1f} {unit}"
    return f"{size} bytes"

"""What ``cse train`` refuses before anything is loaded or made, and the recipe that it saves."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from cse_cli.machine.out_files import check_out_folder, out_file
from cse_cli.options.flags import Choice
from cse_cli.terminal.console import echo_err, warn
from cse_core.errors import CseError, raise_all

if TYPE_CHECKING:
    from cse_cli.plugins.installed import Installed
    from cse_cli.training.plan import PlannedRun
    from cse_core.registry.registry import Registry
    from cse_core.suites import DevSet
    from cse_engine.compose.composition import Composition
    from cse_engine.run.run_folder import RunFolder

_SHOWN = 5
"""Changed settings of a run that a refusal names."""


def check_out(folder: Path, *, force: bool = False) -> None:
    """Refuse a folder that cannot become a run's; with ``force`` a run in it may be replaced."""
    from cse_engine.run.run_folder import RunFolder

    if not force:
        RunFolder.check_free(folder)
    check_links(folder, "--out")
    replaced = force and RunFolder(folder).recipe.is_file()
    names = [] if replaced else sorted(_visible(folder) or ())
    if names == ["checkpoints"] and _visible(folder / names[0]) == []:
        names = []
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise CseError(
            f"holds other things: {names[0]}{more}",
            where="--out",
            value=str(folder),
            hint="name a new or an empty folder",
        )
    check_out_folder(folder)


def _visible(path: Path) -> list[str] | None:
    """Return the names in a folder except hidden ones, None if it is not a folder.

    A run that was killed before it began leaves hidden ones, in ``checkpoints`` too.
    """
    if not path.is_dir():
        return None
    return [entry.name for entry in path.iterdir() if not entry.name.startswith(".")]


def check_links(folder: Path, where: str) -> None:
    """Refuse links and pipes among a run's own files: what is written there lies elsewhere."""
    from cse_core.files import EVALUATIONS, FOLDERS, LOCK, METRICS, RESULT, RUN_FILE

    files = (folder / n for n in (RUN_FILE, RESULT, LOCK, METRICS, EVALUATIONS, *FOLDERS))
    walks = (os.walk(folder / name) for name in FOLDERS)  # which enters no link below
    inside = (Path(at, entry) for walk in walks for at, *names in walk for entry in sum(names, []))
    for file in chain(files, inside):
        what = "a link" if file.is_symlink() else "a pipe or a device"
        if file.is_symlink() or (file.exists() and not (file.is_file() or file.is_dir())):
            raise CseError(
                f"{file.relative_to(folder)} is {what}, and a run writes to files of its own",
                where=where,
                value=str(folder),
                hint="replace it by the file it points to" if file.is_symlink() else "remove it",
            )


def planned_run(
    composition: Composition, plugins: Installed, out: Path | None, *, force: bool = False
) -> PlannedRun:
    """Refuse what a run refuses before it begins; say where it will lie and how it is scored."""
    from cse_cli.plugins.weights import planned_weights
    from cse_cli.texts.corpus_facts import lengths
    from cse_cli.training.plan import PlannedRun

    if out is not None:
        check_out(out, force=force)
    check_can_load(composition, plugins)
    sets = check_read(composition, plugins)
    folder = str(out) if out is not None else f"{default_folder(composition)}-DATE-TIME"
    cut, weights = lengths(composition, plugins), planned_weights(composition, plugins)
    return PlannedRun(composition, folder, out is None, sets, cut, *weights)


def check_can_load(composition: Composition, plugins: Installed) -> None:
    """Refuse an encoder of the hub that is not in the cache where the hub does not answer."""
    from cse_engine.compose.models import Models

    model = composition.facts.model
    if composition.facts.family is None and Models(plugins.registry).find(model) is None:
        what = "is not in the cache, and the Hugging Face hub does not answer"
        hint = "name a model folder or an installed encoder, or run it once where the hub answers"
        raise CseError(what, where="model.name", value=model, hint=hint)


def default_folder(composition: Composition) -> Path:
    """Return the default folder of a run, without the time that is added to it."""
    name = composition.recipe or "-".join(part.name for part in composition.of("loss"))
    return Path("runs", name.replace("/", "-"))


def check_read(composition: Composition, plugins: Installed) -> dict[str, DevSet]:
    """Refuse what a run refuses before it begins: a device, dev sets, a choice by them.

    Neither torch nor a model is loaded, but for the device where one is named.

    Returns:
        The dev sets of the run, by name.

    Raises:
        CseError: If a device is not there, a dev set cannot be read, or none has such a score.
    """
    from cse_engine.compose.checks import check_only
    from cse_engine.run.dev_sets import by_name, choosing_score, dev_sets

    train = composition.train
    if train.device not in ("auto", "cpu"):
        from cse_engine.runtime.device import resolve_device

        resolve_device(train.device)
    read, names = composition.read, composition.data.path
    corpus = None if read is None else read.corpus(composition.needed_columns)
    if corpus is not None:
        raise_all([*check_only(composition, corpus)])
    sets = by_name(dev_sets(train, names, plugins.registry, warn, corpus=corpus))
    choosing_score(sets, train.select)
    return sets


def refuse_beside_resume(
    choice: Choice, out: Path | None, save_recipe: Path | None, dry_run: bool, force: bool
) -> None:
    """Refuse flags that would change a run which goes on."""
    about = {"set": choice.sets, "out": out, "save-recipe": save_recipe, "dry-run": dry_run}
    others = {**vars(choice), "sets": [], "kinds": {}, **about, "force": force, **choice.kinds}
    beside = [f"--{flag}" for flag, value in others.items() if value]
    if beside:
        raise CseError(
            f"a resumed run keeps its settings; {', '.join(beside)} cannot change them",
            where="--resume",
            hint="leave it out, or start a new run with --recipe DIR/run.toml",
        )


def check_resumed(path: Path) -> None:
    """Refuse a run that is finished or has other settings now; remove a result that is damaged.

    Of a finished run it tells whether the model is damaged, of others which settings were changed.
    """
    from cse_engine.run.run_folder import RunFolder

    check_links(path, "--resume")
    folder = RunFolder.open(path)
    if _is_finished(folder):
        run = quote(str(path))
        raise CseError(
            f"run {str(path)!r} has already finished",
            where="--resume",
            hint=f"`cse eval {run}` scores it, `cse train --recipe {run} --out DIR` repeats it, "
            f"--model {run} added to that trains its model further",
        )
    written = _written(folder)
    try:
        text = folder.recipe.read_bytes() if folder.recipe.is_file() else b""
        now = dict(_flat(tomllib.loads(text.decode())))
    except (OSError, ValueError, RecursionError):
        now = {}
    if written is None or not now:  # a resume writes it again
        if written is not None:
            echo_err(f"{folder.recipe} is damaged or missing: writing it again")
        return
    hint = f"restore it in {folder.recipe}, or start a new run with this file as --recipe"
    _refuse_changes(dict(_flat(tomllib.loads(written.decode()))), now, hint)


def check_auto(out: Path | None, force: bool) -> None:
    """Refuse ``--resume auto`` without a folder, or with one that is to be replaced."""
    if out is None or force:
        what, hint = "begins or continues the run of --out", "name it, without --force"
        raise CseError(what, where="--resume", value="auto", hint=hint)


def check_same(
    composition: Composition, path: Path, registry: Registry
) -> Literal["", "begun", "finished"]:
    """Return the state of the run in a folder, empty without one; refuse other settings."""
    from cse_cli.training.resolving import with_absolute_paths
    from cse_engine.run.recipe_file import dump_recipe
    from cse_engine.run.run_folder import RunFolder

    folder = RunFolder(path)
    written = _written(folder)
    if written is None and _is_finished(folder) and folder.recipe.is_file():
        written = folder.recipe.read_bytes()  # its checkpoints were removed
    if written is None:
        return ""
    then = tomllib.loads(written.decode())
    del then["run"], then["versions"]
    asked = tomllib.loads(dump_recipe(with_absolute_paths(composition, registry)))
    hint = "name another folder, or leave the run's settings as they were"
    _refuse_changes(dict(_flat(then)), dict(_flat(asked)), hint)
    return "finished" if _is_finished(folder) else "begun"


def _refuse_changes(then: Mapping[str, Any], now: Mapping[str, Any], hint: str) -> None:
    """Refuse settings that are not those of a run, but where it decided what was left open."""

    def same(was: Any, asked: Any) -> bool:
        pinned = [str(name).partition("#")[0] for name in was] if isinstance(was, list) else was
        return asked in (was, pinned, "auto")

    changed = [path for path in {**then, **now} if not same(then.get(path), now.get(path))]
    raise_all(
        [
            CseError(f"was {then.get(path)!r} when the run began", where=path,
                     value=now.get(path, "nothing"), hint=hint)
            for path in changed[:_SHOWN]
        ]
    )  # fmt: skip


def _written(folder: RunFolder) -> bytes | None:
    """Return ``run.toml`` as it was written, None where no copy of it is whole."""
    from cse_core.files import verify_checksums

    for path in folder.checkpoints():
        if verify_checksums(path, folder.recipe.name) is None:
            return (path / folder.recipe.name).read_bytes()
    return None


def _is_finished(folder: RunFolder) -> bool:
    """Tell whether a run has ended; remove a result that is damaged."""
    from cse_core.files import RESULT, verify_checksums

    result = folder.path / RESULT
    if not result.exists():
        return False
    try:
        content = result.read_bytes() if result.is_file() else b""
        whole = bool({"steps", "scores"} <= json.loads(content).keys())
    except (OSError, ValueError, AttributeError, RecursionError):
        whole = False
    wrong = verify_checksums(folder.model) if folder.model.is_dir() else "every file is missing"
    if whole and wrong:
        raise CseError(
            f"is finished, and of its model {wrong}",
            where="--resume",
            value=str(folder.path),
            hint=f"remove {result} to save the model again from the last checkpoint",
        )
    if not whole and (result.is_symlink() or not result.is_file()):
        raise CseError("is not a file", where=str(result), hint="move it away")
    if not whole:
        echo_err(f"{result} is damaged: writing it again")
        result.unlink(missing_ok=True)
    return whole


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of a table by their paths, and the order of tables in a list."""
    if isinstance(value, dict):
        for key, content in value.items():
            yield from _flat(content, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        named = {str(item.get("name", place)): item for place, item in enumerate(value)}
        yield path, list(named)
        yield from _flat(named, path)
    else:
        yield path, value


def save_recipe(composition: Composition, path: Path) -> None:
    """Write the resolved recipe to a file, whole or not at all."""
    from cse_engine.run.recipe_file import dump_recipe

    inputs = (*composition.data.path, *composition.train.dev)
    with out_file(path, "--save-recipe", inputs=inputs) as made:
        made.write_text(dump_recipe(composition), encoding="utf-8")
    echo_err(f"the resolved recipe is in {path}")

"""Load installed plugins, and say what became of every one.

A plugin that raises or returns faulty records is left out, with a status, a reason and the command
that fixes it; the others and the command go on.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint
from typing import Any

import pluggy

from cse_cli.plugins.discovery import (
    ALL,
    blocked,
    describe,
    find_entry_points,
    is_meant,
    left_out_by,
    point_of,
    update_command,
)
from cse_cli.plugins.record_checks import PluginFault, check_names, check_records
from cse_core import __version__, specs
from cse_core.errors import CseError, did_you_mean
from cse_core.registry.plugin_info import NOUNS, TOOLKIT, AnyKind, PluginInfo

BUILTINS = ("cse_core.builtins.plugin",)
"""Modules of the toolkit itself that register parts as any plugin does."""
SLOW = 0.05
"""Seconds of processor time from which on loading a plugin is called slow: each command waits."""


@dataclass(frozen=True)
class PluginManager:
    """The installed plugins and what became of each.

    Attributes:
        infos: One for each entry point, sorted by distribution and entry point.
        unmatched: Names that were to be left out and that no installed plugin has.
        seconds: Processor time that loading each took, by key; of those that were imported.
        hooks: pluggy's manager, with the loaded plugins registered by key.
    """

    infos: tuple[PluginInfo, ...]
    unmatched: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    hooks: pluggy.PluginManager = field(
        default_factory=lambda: pluggy.PluginManager(specs.GROUP), repr=False, compare=False
    )

    def find(self, name: str) -> tuple[PluginInfo, ...]:
        """Return the plugins that a name means: a key, an entry point, or a distribution.

        Raises:
            CseError: If there is none.
        """
        found = tuple(info for info in self.infos if is_meant(info, name))
        if not found:
            known = {text for info in self.infos for text in (info.name, info.distribution)}
            hint = did_you_mean(name, known)
            raise CseError("no plugin of this name is installed", value=name, hint=hint)
        return found


def load_plugins(
    disable: Iterable[str] = (),
    *,
    builtins: Sequence[str] = BUILTINS,
    environ: Mapping[str, str] | None = None,
) -> PluginManager:
    """Load every installed plugin that is not left out; whoever calls it keeps the result.

    ``disable`` names plugins to leave out (``--no-plugin``) by entry point, distribution or key, or
    is ``all``, which leaves ``builtins``; they are never imported, nor what ``CSE_DISABLE_PLUGINS``
    of ``environ`` names. Broken plugins are returned too: nothing that one raises gets out, except
    ``KeyboardInterrupt``.
    """
    left_out = left_out_by(disable, environ)
    loader = _Loader(left_out)
    loader.hooks.add_hookspecs(specs.HOOKS)
    infos = [loader.load(point_of(module)) for module in builtins]  # whose names no plugin takes
    loader.taken.update((part.kind, part.name) for info in infos for part in info.parts)
    found = sorted(find_entry_points(), key=lambda point: describe(point).key)
    infos += [loader.load(point) for point in found]
    infos.sort(key=lambda info: (info.distribution, info.name))
    infos = list(_with_clashes(infos))
    unmatched = tuple(
        name for name in left_out if name != ALL and not any(is_meant(info, name) for info in infos)
    )
    return PluginManager(tuple(infos), unmatched, loader.seconds, loader.hooks)


@dataclass
class _Loader:
    left_out: Mapping[str, str]
    hooks: pluggy.PluginManager = field(default_factory=lambda: pluggy.PluginManager(specs.GROUP))
    seconds: dict[str, float] = field(default_factory=dict)
    taken: set[tuple[AnyKind, str]] = field(default_factory=set)

    def load(self, point: EntryPoint) -> PluginInfo:
        """Return what became of an entry point; what it prints goes to stderr."""
        info = describe(point)
        for name, origin in self.left_out.items():
            if is_meant(info, name) or (name == ALL and point.dist is not None):
                return blocked(info, origin)
        began = time.thread_time()
        try:
            with redirect_stdout(sys.stderr):
                return self._import(point, info)
        except PluginFault as fault:
            return _broken(info, str(fault), fault.__cause__)
        except (Exception, SystemExit) as error:
            return _broken(info, _described(error), error)
        finally:
            self.seconds[info.key] = time.thread_time() - began

    def _import(self, point: EntryPoint, info: PluginInfo) -> PluginInfo:
        plugin = point.load()
        other = self.hooks.get_name(plugin)
        if other is not None:
            reason = f"its module {info.module} is already loaded as {other}"
            fix = f"pip uninstall {info.distribution}"
            return replace(info, status="conflicting", reason=reason, fix=fix)
        stated: Any = getattr(plugin, "CSE_API_VERSION", specs.CSE_API_VERSION)
        if not isinstance(stated, int) or isinstance(stated, bool):
            raise PluginFault(f"CSE_API_VERSION is an integer, not {stated!r}")
        if stated != specs.CSE_API_VERSION:
            current = specs.CSE_API_VERSION
            reason = f"it is made for API version {stated}, {TOOLKIT} {__version__} has {current}"
            since = [f"{n}: {what}" for n, what in specs.CHANGES.items() if n > stated]
            reason += f" ({'; '.join(since)})" if since else ""
            fix = update_command(TOOLKIT if stated > current else info.distribution)
            return replace(info, status="incompatible", reason=reason, fix=fix)
        try:
            self.hooks.register(plugin, info.key)
            names = self._hooks_of(plugin)
            parts = tuple(
                record
                for name in names
                for implementation in getattr(self.hooks.hook, name).get_hookimpls()
                if implementation.plugin is plugin
                for record in check_records(name, implementation.function())
            )
            check_names(parts)
            for part in parts:
                if (part.kind, part.name) in self.taken:
                    what = f"{NOUNS[part.kind]} {part.name!r} has the name of a part of {TOOLKIT}"
                    raise PluginFault(f"{what}: choose another")
        except (Exception, SystemExit):
            if self.hooks.is_registered(plugin):  # pluggy itself refuses some
                self.hooks.unregister(plugin)
            raise
        return replace(info, hooks=names, parts=parts)

    def _hooks_of(self, plugin: object) -> tuple[str, ...]:
        """Return the hooks that a registered plugin implements.

        Raises:
            PluginFault: If one has no known name or lacks ``@hookimpl``, or if there is none.
        """
        names = tuple(caller.name for caller in self.hooks.get_hookcallers(plugin) or ())
        for name in names:
            if name not in specs.HOOK_RECORDS:
                raise PluginFault(f"unknown hook {name}: {did_you_mean(name, specs.HOOK_RECORDS)}")
        for name in specs.HOOK_RECORDS:
            if name not in names and inspect.isroutine(getattr(plugin, name, None)):
                raise PluginFault(f"{name} has no @hookimpl in front (cse_core.specs.hookimpl)")
        if not names:
            known = ", ".join(sorted(specs.HOOK_RECORDS))
            raise PluginFault(f"it implements no hook (known: {known})")
        return names


def _with_clashes(infos: Sequence[PluginInfo]) -> Iterator[PluginInfo]:
    """Yield the plugins, with those marked whose parts share a name with another's."""
    owners: dict[tuple[AnyKind, str], list[PluginInfo]] = defaultdict(list)
    for info in infos:
        for part in info.parts:
            owners[part.kind, part.name].append(info)
    shared = {part: holders for part, holders in owners.items() if len(holders) > 1}
    for info in infos:
        clashes = {part: holders for part, holders in shared.items() if info in holders}
        if not clashes:
            yield info
            continue
        reasons, same = [], False
        for (kind, name), holders in clashes.items():
            others = [other for other in holders if other is not info]
            own = [other.distribution == info.distribution for other in others]
            keys = [
                other.key if near else other.label for other, near in zip(others, own, strict=True)
            ]
            reasons.append(f"{NOUNS[kind]} {name} is also in {', '.join(keys)}")
            same = same or any(own)
        name = next(iter(clashes))[1]
        fix = f"write {info.key if same else info.distribution}/{name} to use this one"
        yield replace(info, status="conflicting", reason="; ".join(reasons), fix=fix)


def _broken(info: PluginInfo, reason: str, error: BaseException | None = None) -> PluginInfo:
    return replace(
        info,
        status="broken",
        reason=" ".join(reason.split()),
        fix=update_command(info.distribution),
        traceback="".join(traceback.format_exception(error)) if error is not None else "",
    )


def _described(error: BaseException) -> str:
    """Return an exception in one line, with the place that raised it."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and "importlib" not in frame.filename
    ]
    at = ""
    if frames and frames[-1].filename != __file__:
        at = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})"
    return f"{''.join(traceback.format_exception_only(error)).strip()}{at}"

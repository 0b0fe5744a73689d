"""Load installed plugins, and say what became of every one.

A plugin that raises or returns faulty records is left out, with a status, a reason and what to do
about it; the others and the command go on.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.metadata import EntryPoint

import pluggy

from cse_core import __version__, hookspecs
from cse_core.errors import CseError, did_you_mean
from cse_core.hookspecs import CSE_API_VERSION, HOOK_RECORDS
from cse_core.records import Record
from cse_core.registry import discovery
from cse_core.registry.plugin_info import TOOLKIT, PluginInfo
from cse_core.registry.record_checks import PluginFault, check_records


class PluginManager(pluggy.PluginManager):
    """pluggy's manager of the installed plugins: ``manager.hook.cse_losses()`` and the like.

    Attributes:
        infos: What became of each, sorted by distribution and entry point.
    """

    def __init__(self) -> None:
        super().__init__(hookspecs.GROUP)
        self.add_hookspecs(hookspecs)
        self.infos: tuple[PluginInfo, ...] = ()

    def find(self, name: str) -> tuple[PluginInfo, ...]:
        """Return the plugins that a name means: a key, an entry point, or a distribution."""
        plugins = tuple(info for info in self.infos if discovery.is_meant(info, name))
        if not plugins:
            known = {text for info in self.infos for text in (info.name, info.distribution)}
            hint = did_you_mean(name, known)
            raise CseError("no plugin of this name is installed", value=name, hint=hint)
        return plugins

    def load(self, info: PluginInfo, point: EntryPoint, left_out: Mapping[str, str]) -> PluginInfo:
        """Import and register what an entry point names; what it prints goes to stderr.

        Nothing that a plugin raises gets out, except ``KeyboardInterrupt``. ``left_out`` has names
        of plugins that are never imported, and what leaves each out.
        """
        if (blocked := discovery.blocked(info, left_out)) is not None:
            return blocked
        plugin = None
        try:
            with redirect_stdout(sys.stderr):
                plugin = point.load()
                stated = getattr(plugin, "CSE_API_VERSION", CSE_API_VERSION)
                if stated != CSE_API_VERSION:
                    has = f"{TOOLKIT} {__version__} has {CSE_API_VERSION}"
                    both = discovery.update_command(f"{TOOLKIT} {info.distribution}")
                    raise PluginFault(f"it is made for API version {stated!r}, {has}", fix=both)
                self.register(plugin, info.key)
                info = replace(info, hooks=self._hooks_of(plugin))
                return replace(info, parts=tuple(self._records(plugin, info)))
        except (Exception, SystemExit) as error:
            if self.get_name(plugin) == info.key:
                self.unregister(plugin)
            return _broken(info, error)

    def _hooks_of(self, plugin: object) -> tuple[str, ...]:
        """Return the hooks that a registered plugin implements."""
        names = tuple(caller.name for caller in self.get_hookcallers(plugin) or ())
        for name in names:
            if name not in HOOK_RECORDS:
                raise PluginFault(f"unknown hook {name}: {did_you_mean(name, HOOK_RECORDS)}")
        for name in HOOK_RECORDS:
            if name not in names and inspect.isroutine(getattr(plugin, name, None)):
                raise PluginFault(f"{name} has no @hookimpl in front (cse_core.hookspecs.hookimpl)")
        if not names:
            raise PluginFault(f"it implements no hook (known: {', '.join(sorted(HOOK_RECORDS))})")
        return names

    def _records(self, plugin: object, info: PluginInfo) -> Iterator[Record]:
        """Call the hooks of a plugin and check its records.

        Raises:
            PluginFault: If what a hook returned is faulty; what a hook raises gets out.
        """
        for hook in info.hooks:
            for implementation in getattr(self.hook, hook).get_hookimpls():
                if implementation.plugin is plugin:
                    yield from check_records(hook, implementation.function())


def load_plugins(disable: Iterable[str] = ()) -> PluginManager:
    """Load every installed plugin that is not left out; whoever calls it keeps the result.

    ``disable`` names plugins to leave out (``--no-plugin``) by entry point, distribution or key, or
    is ``all``, which leaves those of the toolkit's own wheel; they are never imported, nor what
    ``CSE_DISABLE_PLUGINS`` names. Broken plugins are among ``infos`` too.
    """
    manager, left_out = PluginManager(), discovery.left_out_by(disable)
    points = ((discovery.describe(point), point) for point in discovery.find_entry_points())
    found = sorted(points, key=lambda item: (item[0].distribution, item[0].name))
    manager.infos = tuple(manager.load(info, point, left_out) for info, point in found)
    return manager


def _broken(info: PluginInfo, error: BaseException) -> PluginInfo:
    """Return a plugin that raised, or returned what is faulty, with the place and what to do."""
    reason, fix, where = str(error), f"correct {info.module}", ""
    if isinstance(error, PluginFault):
        fix = error.fix or fix
    else:
        frames = [
            f" ({os.path.basename(frame.filename)}:{frame.lineno})"
            for frame in traceback.extract_tb(error.__traceback__)
            if "importlib" not in frame.filename and os.path.dirname(__file__) not in frame.filename
        ]
        reason = "".join([*traceback.format_exception_only(error), *frames[-1:]])
        fix = discovery.update_command(info.distribution)
        where = "".join(traceback.format_exception(error))
    return replace(
        info,
        status="broken",
        reason=" ".join(reason.split()),
        fix=f"{fix}, or leave it out: --no-plugin {info.name}",
        hooks=(),
        parts=(),
        traceback=where,
    )

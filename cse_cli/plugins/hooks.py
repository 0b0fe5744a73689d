"""Which hooks the module of a plugin implements, seen before it is registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pluggy

from cse_cli.plugins.record_checks import PluginFault
from cse_core.errors import did_you_mean
from cse_core.specs import GROUP, HOOK_RECORDS


def hooks_of(manager: pluggy.PluginManager, plugin: object) -> tuple[str, ...]:
    """Return the hooks that a plugin implements, before it is registered.

    Raises:
        PluginFault: If a hook has no such name, asks for arguments, wraps others' or lacks
            ``@hookimpl``, or if there is none.
    """
    hooks = []
    for attribute in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is None:
            if attribute in HOOK_RECORDS and _is_bare_hook(plugin, attribute):
                raise PluginFault(
                    f"{attribute} has no @hookimpl in front (cse_core.specs.hookimpl)"
                )
            continue
        name = options.get("specname") or attribute
        if name not in HOOK_RECORDS:
            raise PluginFault(f"unknown hook {name}: {did_you_mean(name, HOOK_RECORDS)}")
        if options.get("hookwrapper") or options.get("wrapper"):
            raise PluginFault(f"{name} is a wrapper; hooks of this toolkit cannot be wrapped")
        asked = _required_arguments(getattr(plugin, attribute))
        if asked:
            raise PluginFault(f"{name} takes no argument, but it asks for {', '.join(asked)}")
        hooks.append(name)
    if not hooks:
        raise PluginFault(f"it implements no hook (known: {', '.join(sorted(HOOK_RECORDS))})")
    return tuple(dict.fromkeys(hooks))


def _required_arguments(hook: Callable[..., object]) -> list[str]:
    return [
        argument.name
        for argument in inspect.signature(hook).parameters.values()
        if argument.default is argument.empty
        and argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
    ]


def _is_bare_hook(plugin: object, attribute: str) -> bool:
    value = inspect.getattr_static(plugin, attribute)
    return inspect.isroutine(value) and not hasattr(value, f"{GROUP}_spec")

"""The hooks. Each takes no argument and returns a list of records."""

from __future__ import annotations

from pluggy import HookimplMarker, HookspecMarker

from cse_core.records import RECORD_KINDS, Record

CSE_API_VERSION = 1
"""Raised when a change of hooks or contracts breaks plugins; a plugin may state the one it needs as
``CSE_API_VERSION`` in its plugin module."""
CHANGES = {1: "the interface of the first release"}
"""What each version changed; messages about plugins of an older version say it."""
GROUP = "cse"
"""The entry-point group of plugins, and pluggy's project name."""

hookimpl = HookimplMarker(GROUP)

HOOK_RECORDS: dict[str, type[Record]] = {each.hook: each.record for each in RECORD_KINDS}
"""Each hook, and the record that it returns a list of."""


_hookspec = HookspecMarker(GROUP)
HOOKS = type("Hooks", (), {name: staticmethod(_hookspec(lambda: None)) for name in HOOK_RECORDS})
"""The hooks as pluggy takes them."""

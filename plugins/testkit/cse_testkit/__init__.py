"""The conformance kit for authors of plugins.

Subclass a suite for each part and each recipe, and one for the plugin::

    from cse_testkit import LossSuite, PluginSuite, RecipeSuite

    class TestMargin(LossSuite):
        part = ("loss", "margin")

    class TestRecipe(RecipeSuite):
        recipe = "margin-paper"

    class TestPlugin(PluginSuite):
        distribution = "cse-margin"

Everything runs on a tiny random encoder and a made-up corpus: no network, no GPU. For tests of your
own there are ``make_batch``, ``make_context`` and ``make_part`` (fixed vectors, no encoder) and
``run_steps`` (a few training steps).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_testkit.names import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command of the kit is found without torch."""
    return getattr(import_module(f"{__name__}.names"), name)

"""Every part, recipe and plugin that is installed here keeps every promise.

Plugins of this repository hold these suites in their own tests; here are the built-in parts and
what else is installed.
"""

import re
from pathlib import Path

import pytest
from cse_testkit import installed_registry, part_suites, recipe_suites

from cse_core.records import RecipeSpec

PLUGINS = Path(__file__).parents[2]
OWN = {
    f"cse-{each.parent.name}": each
    for each in PLUGINS.glob("*/tests")
    if [*each.parent.glob("*/plugin.py")]
}
REGISTRY = installed_registry()

for _distribution in {info.distribution for info in REGISTRY.plugins} - {*OWN}:
    globals().update(part_suites(_distribution))
    globals().update(recipe_suites(_distribution))


def test_a_plugin_of_this_repository_holds_its_suites_itself() -> None:
    for distribution, folder in OWN.items():
        text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("test_*.py"))
        named = re.findall(rf'(\w+)[ (=]+\s*"{distribution}"', text)
        parts = any(part.distribution == distribution for part in REGISTRY.parts())
        recipes = any(recipe.distribution == distribution for recipe in REGISTRY.all(RecipeSpec))
        assert ("part_suites" if parts else "distribution") in named, distribution
        assert not recipes or "recipe_suites" in named, distribution


def test_a_suite_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cse-dclr brings no loss\.dcrl"):
        part_suites("cse-dclr", {"loss.dcrl": {}})
    (tmp_path / "dcrl.toml").touch()
    with pytest.raises(ValueError, match="cse-dclr brings no dcrl"):
        recipe_suites("cse-dclr", tmp_path)

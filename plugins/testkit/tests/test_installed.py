"""Every part, recipe and plugin that is installed here keeps every promise.

Plugins of this repository hold these suites in their own tests; here are the built-in parts and
what else is installed.
"""

from __future__ import annotations

from pathlib import Path

from cse_testkit import PluginSuite, RecipeSuite, installed_registry, suite_of

PLUGINS = Path(__file__).parents[2]
OWN = {
    f"cse-{each.parent.name}": each
    for each in PLUGINS.glob("*/tests")
    if [*each.parent.glob("*/plugin.py")]
}
REGISTRY = installed_registry()

for _part in REGISTRY.parts():
    if _part.distribution not in OWN:
        _suite = suite_of(_part.spec.kind, _part.qualified)
        globals()[_suite.__name__] = _suite
for _recipe in REGISTRY.recipes():
    if _recipe.distribution not in OWN:
        _name = f"TestRecipe{_recipe.name}"
        globals()[_name] = type(_name, (RecipeSuite,), {"recipe": _recipe.name})
for _distribution in {info.distribution for info in REGISTRY.plugins} - {*OWN}:
    _name = f"TestPlugin{_distribution}"
    globals()[_name] = type(_name, (PluginSuite,), {"distribution": _distribution})


def test_a_plugin_of_this_repository_holds_its_suites_itself() -> None:
    for distribution, folder in OWN.items():
        text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("test_*.py"))
        assert f'distribution = "{distribution}"' in text
        for part in REGISTRY.parts():
            if part.distribution == distribution:
                assert f'part = ("{part.spec.kind}", "{part.name}")' in text, part.name
        for recipe in REGISTRY.recipes():
            if recipe.distribution == distribution:
                assert f'recipe = "{recipe.name}"' in text, recipe.name

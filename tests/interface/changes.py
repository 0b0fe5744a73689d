"""What differs between two descriptions of the interface, and what of it breaks plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.interface.description import OVERRIDDEN, Description


def breaks(old: Description, new: Description) -> list[str]:
    """Return the changes that break a plugin or a program made for ``old``."""
    return list(_breaks(old, new))


def _breaks(old: Description, new: Description) -> Iterator[str]:
    for hook, record in old["hooks"].items():
        if new["hooks"].get(hook) != record:
            yield f"hook {hook} returned {record}, now {new['hooks'].get(hook, 'it is gone')}"
    for module, names in old["names"].items():
        now = new["names"].get(module, {})
        for name, before in names.items():
            where = f"{module}.{name}"
            if name not in now:
                yield f"{where} is gone"
            else:
                yield from _of_name(where, before, now[name], overridden=module in OVERRIDDEN)
    for table, options in old["settings"].items():
        yield from _of_fields(table, options, new["settings"].get(table, {}))
    for command, keys in old["json"].items():
        now = new["json"].get(command, {})
        for path, types in keys.items():
            if path not in now:
                yield f"{command}: {path} is gone"
            elif not set(now[path].split(" or ")) <= set(types.split(" or ")):
                yield f"{command}: {path} was {types}, now {now[path]}"


def _of_name(where: str, old: Any, new: Any, *, overridden: bool) -> Iterator[str]:
    if old.keys() != new.keys():
        yield f"{where} is another kind of thing"
        return
    if "parameters" in old:
        yield from _of_call(where, old["parameters"], new["parameters"], overridden=False)
    if "value" in old and isinstance(old["value"], list):
        for gone in sorted(set(old["value"]) - set(new["value"])):
            yield f"{where} has {gone!r} no more"
    elif "value" in old and old["value"] != new["value"]:
        yield f"{where} was {old['value']!r}, now {new['value']!r}"
    if "type" in old and old["type"] != new["type"]:
        yield f"{where} was {old['type']}, now {new['type']}"
    if "fields" not in old:
        return
    for base in set(old["bases"]) - set(new["bases"]):
        yield f"{where} is a {base} no more"
    yield from _of_fields(where, old["fields"], new["fields"])
    for name, method in old["methods"].items():
        now = new["methods"].get(name)
        if now is None or ("property" in method) != ("property" in now):
            yield f"{where}.{name} is gone, or no longer {'read' if now else 'there'} as before"
        elif "parameters" in method:
            yield from _of_call(
                f"{where}.{name}", method["parameters"], now["parameters"], overridden=overridden
            )
    for name in new["methods"].keys() - old["methods"].keys():
        if new["methods"][name].get("abstract"):
            yield f"{where}.{name} must be written now"


def _of_fields(where: str, old: Description, new: Description) -> Iterator[str]:
    for name, before in old.items():
        now = new.get(name)
        if now is None:
            yield f"{where}.{name} is gone"
        elif now["type"] != before["type"]:
            yield f"{where}.{name} was {before['type']}, now {now['type']}"
        elif now["required"] and not before["required"]:
            yield f"{where}.{name} must be set now"
    for name in new.keys() - old.keys():
        if new[name]["required"]:
            yield f"{where}.{name} is new and must be set"


def _of_call(where: str, old: Any, new: Any, *, overridden: bool) -> Iterator[str]:
    """Yield what breaks calls, or where plugins write the method, what breaks their signature."""
    if overridden:
        if [each[:2] for each in old] != [each[:2] for each in new]:
            yield f"{where} was called with {_names(old)}, now with {_names(new)}"
        return
    positional = [each[0] for each in new if each[1].startswith("positional")]
    for place, (name, kind, _) in enumerate(old):
        now = next((each for each in new if each[0] == name), None)
        if now is None:
            yield f"{where} takes no {name!r} now"
        elif kind.startswith("positional") and positional[place : place + 1] != [name]:
            yield f"{where} takes {name!r} at another place"
    before = {each[0]: each[2] for each in old}
    for name, kind, required in new:
        if required and not before.get(name, False) and not kind.startswith("var_"):
            yield f"{where} asks for {name!r} now"


def _names(parameters: Any) -> str:
    return "(" + ", ".join(each[0] for each in parameters) + ")"

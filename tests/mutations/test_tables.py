"""The tables of mutations fit the code; ``make mutations`` runs the tests against each."""

import tomllib

import pytest

from tests.mutations.tables import OWN, PLUGINS, mutations

MIN_MUTATIONS = 15
METHODS = sorted(path.parents[1].name for path in PLUGINS.glob("*/cse_*/recipes"))


@pytest.mark.parametrize("name", [*OWN, *METHODS])
def test_a_table_has_enough_mutations_and_each_fits_its_file(name: str) -> None:
    found = mutations([name])
    assert len({(each.file, each.old, each.new) for each in found}) == len(found) >= MIN_MUTATIONS
    for each in found:
        changed = each.applied(each.path.read_text(encoding="utf-8"))
        if each.path.suffix == ".toml":
            tomllib.loads(changed)
        else:
            compile(changed, each.file, "exec")
        assert not each.test or (each.tests / each.test).is_file()
        assert bool(each.test) != bool(each.argued), f"{each.label}: name a test, or argue"


def test_a_text_that_is_not_there_or_twice_is_refused() -> None:
    each = mutations([METHODS[0]])[0]
    for text in ("", each.old * 2):
        with pytest.raises(ValueError, match="times"):
            each.applied(text)
    with pytest.raises(ValueError, match="no table of mutations: nothing"):
        mutations(["nothing"])

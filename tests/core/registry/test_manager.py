import importlib.metadata
from pathlib import Path

import pytest

from cse_core.errors import CseError
from cse_core.records import LossSpec
from cse_core.registry.registry import Registry
from tests.fixtures.distributions import Distributions, loss, plugin

GOOD = plugin(loss("twins"))


def statuses(made: Distributions, *disable: str) -> dict[str, str]:
    manager = made.load(*disable)
    manager.check_pending()
    return {info.key: info.status for info in manager.infos}


def test_good_plugin_is_active_with_its_parts(distributions: Distributions) -> None:
    distributions.add("cse-good", GOOD, version="1.2", requires=("cse-toolkit>=0.1,<0.2",))
    info = distributions.info("cse-good:good")
    assert (info.status, info.reason, info.fix) == ("active", "", "")
    assert (info.distribution, info.version, info.name) == ("cse-good", "1.2", "good")
    assert (info.summary, info.module) == ("Plugin cse-good", "cse_good.plugin")
    assert info.hooks == ("cse_losses",)
    assert [type(part) for part in info.parts] == [LossSpec]


BROKEN = {
    "missing-module": ("import no_such_thing\n" + GOOD, "No module named 'no_such_thing'"),
    "import-error": ("from os import nonsense\n" + GOOD, "cannot import name 'nonsense'"),
    "raises-at-import": ("1 / 0\n" + GOOD, "ZeroDivisionError: division by zero (plugin.py:3)"),
    "syntax": ("def (:\n", "SyntaxError"),
    "exits": ("raise SystemExit(3)\n", "SystemExit: 3"),
    "misspelt": (
        plugin(loss("x"), hook="cse_loses"),
        "unknown hook cse_loses: did you mean cse_losses",
    ),
    "no-marker": (GOOD.replace("@hookimpl\n", ""), "cse_losses has no @hookimpl"),
    "no-hook": ("x = 1\n", "it implements no hook"),
    "extra-argument": (
        GOOD.replace("()", "(config)", 1),
        "Argument(s) {'config'} are declared in the hookimpl but can not be found in the hookspec",
    ),
    "raises-in-hook": (
        GOOD + "@hookimpl\ndef cse_metrics():\n    raise RuntimeError('half-way')\n",
        "RuntimeError: half-way (plugin.py:",
    ),
    "exits-in-hook": ("@hookimpl\ndef cse_losses():\n    raise SystemExit\n", "SystemExit"),
    "returns-none": (
        "@hookimpl\ndef cse_losses():\n    pass\n",
        "cse_losses returned None; it must return a list of LossSpec",
    ),
    "one-record": (
        f"@hookimpl\ndef cse_losses():\n    return {loss('x')}\n",
        "cse_losses returned LossSpec(name='x', summary='A loss', factory='m.n:C'",
    ),
    "text": (
        "@hookimpl\ndef cse_losses():\n    return 'twins'\n",
        "cse_losses returned 'twins'; it must return a list of LossSpec",
    ),
    "generator": (
        "@hookimpl\ndef cse_losses():\n    yield 1\n",
        "cse_losses returned 1 (int) among its records; each must be a LossSpec",
    ),
    "raises-in-generator": (
        "@hookimpl\ndef cse_losses():\n    yield 1 / 0\n",
        "ZeroDivisionError: division by zero (plugin.py:",
    ),
    "wrong-record": (
        plugin(loss("x"), hook="cse_metrics"),
        "(LossSpec) among its records; each must be a MetricSpec",
    ),
    "bad-name": (plugin(loss("Info_NCE")), "a name is lower-case words"),
    "name-no-text": (plugin(loss("x").replace('"x"', "3")), "name is not one line of printable"),
    "no-summary": (plugin(loss("x").replace("A loss", "")), "the summary is empty"),
    "long-summary": (
        plugin(loss("x").replace("A loss", "a\\nb")),
        "is not one line of printable text",
    ),
    "bad-options": (
        plugin(loss("x", "options=dict")),
        "cse_losses, loss 'x': options is not one line of printable text",
    ),
    "pooler-of-no-class": (
        plugin('PoolSpec(name="x", summary="s", factory="m:C")', hook="cse_poolers"),
        "a pooler is a SliceSpec, RowPoolerSpec, MultiVectorSpec or HeadSpec",
    ),
    "bad-point": (
        plugin(
            'AugmenterSpec(name="x", summary="s", factory="m:C", point="word")',
            hook="cse_augmenters",
        ),
        "point is 'word'; known: input_embeddings",
    ),
    "bad-gradient": (
        plugin(
            'AugmenterSpec(name="x", summary="s", factory="m:C", gradient="old")',
            hook="cse_augmenters",
        ),
        "gradient is 'old'; known: None, fresh, previous",
    ),
    "bad-views": (
        plugin(
            'AugmenterSpec(name="x", summary="s", factory="m:C", views="positive")',
            hook="cse_augmenters",
        ),
        "views is 'positive', not a tuple",
    ),
    "unknown-token": (
        plugin(loss("x", "requires=('mask-tokens',)")),
        "did you mean mask-token or end-token?",
    ),
    "a-kind-alone": (plugin(loss("x", "requires=('view',)")), "has 'view', which is not a known"),
    "unknown-alternative": (plugin(loss("x", "requires=(('pairs', 'vew:a'),)")), "has 'vew:a'"),
    "token-no-tuple": (plugin(loss("x", "provides='pairs'")), "provides is 'pairs', not a tuple"),
}


RAISE = {
    *("missing-module", "import-error", "raises-at-import", "syntax", "exits", "extra-argument"),
    *("raises-in-hook", "exits-in-hook", "raises-in-generator"),
}
"""Those whose authors may have released a version that works."""


def test_broken_plugins_are_left_out_and_others_work(distributions: Distributions) -> None:
    for case, (source, _) in BROKEN.items():
        distributions.add(f"cse-bad-{case}", source)
    distributions.add("cse-good", plugin(loss("fine")))
    manager = distributions.load()
    found = {info.distribution: info for info in manager.infos}
    assert len(found) == len(BROKEN) + 2
    for case, (_, reason) in BROKEN.items():
        bad = found[f"cse-bad-{case}"]
        assert (bad.status, reason in bad.reason) == ("broken", True), (case, bad.reason)
        assert "\n" not in bad.reason, case
        remedy = "update cse-bad" if case in RAISE else "correct cse_bad"
        assert bad.fix.startswith(remedy), case
        assert bad.fix.endswith(f", or leave it out: --no-plugin bad-{case}"), case
        assert bad.parts == bad.hooks == (), case
    assert "ZeroDivisionError" in found["cse-bad-raises-at-import"].traceback
    assert found["cse-good"].status == found["cse-toolkit"].status == "active"
    keys = {found["cse-good"].key, found["cse-toolkit"].key}
    assert {name for name, _ in manager.list_name_plugin()} == keys
    manager.check_pending()
    returned = {record.name for records in manager.hook.cse_losses() for record in records}
    assert returned == {"fine", "infonce"}
    assert manager.hook.cse_metrics() == []


def test_any_iterable_of_records_is_taken(distributions: Distributions) -> None:
    many = f"{loss('one')}, {loss('two')}"
    given = {
        "tuple": f"return ({many},)",
        "generator": f"yield {loss('one')}\n    yield {loss('two')}",
        "empty": "return []",
    }
    for name, body in given.items():
        distributions.add(f"cse-{name}", f"@hookimpl\ndef cse_losses():\n    {body}\n")
    found = {info.name: info for info in distributions.load().infos}
    assert {info.status for info in found.values()} == {"active"}
    assert [part.name for part in found["tuple"].parts] == ["one", "two"]
    assert found["tuple"].parts == found["generator"].parts
    assert (found["empty"].parts, found["empty"].hooks) == ((), ("cse_losses",))


def test_entry_points_of_objects(distributions: Distributions) -> None:
    distributions.module("cse_half", GOOD)
    distributions.metadata("cse-half", "half = cse_half.plugin:Plugin")
    info = distributions.info("cse-half:half")
    assert info.status == "broken"
    assert "has no attribute 'Plugin'" in info.reason
    source = """
    class Plugin:
        CSE_API_VERSION = 1

        @hookimpl
        def cse_losses(self):
            return [LossSpec(name="x", summary="s", factory="m:C")]

    plugin = Plugin()
    """
    distributions.module("cse_object", source)
    distributions.metadata("cse-object", "object = cse_object.plugin:plugin")
    info = distributions.info("cse-object:object")
    assert (info.status, [part.name for part in info.parts]) == ("active", ["x"])


def test_interrupt_passes(distributions: Distributions) -> None:
    distributions.add("cse-slow", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        distributions.load()


def marked(marker: Path, source: str = GOOD) -> str:
    return f"open({str(marker)!r}, 'w').close()\n" + source


@pytest.mark.parametrize("stated", [2, 0, "1"])
def test_other_api_versions(distributions: Distributions, stated: object) -> None:
    distributions.add("cse-api", f"CSE_API_VERSION = {stated!r}\n{GOOD}")
    manager = distributions.load()
    info = manager.infos[0]
    assert info.status == "broken"
    assert info.reason == f"it is made for API version {stated!r}, cse-toolkit 0.1.0 has 1"
    assert info.fix == "update cse-toolkit cse-api, or leave it out: --no-plugin api"
    assert [name for name, _ in manager.list_name_plugin()] == ["cse-toolkit:basics"]


def test_blocked_plugin_is_never_imported(distributions: Distributions, tmp_path: Path) -> None:
    marker = tmp_path / "imported"
    distributions.add("cse-spy", marked(marker), entry_point="spy")
    for name in ("spy", "cse-spy", "cse_spy", "cse-spy:spy", "all"):
        blocked, own = distributions.load(name).infos
        assert (blocked.status, own.status) == ("blocked", "active")
        assert blocked.reason == f"left out by --no-plugin {name}"
        assert blocked.fix == f"run without --no-plugin {name}"
        assert not marker.exists()
    assert distributions.info("cse-spy:spy").status == "active"
    assert marker.exists()


def test_plugins_are_blocked_by_key_and_environment(
    distributions: Distributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributions.add("cse-one", plugin(loss("first")), entry_point="same")
    distributions.add("cse-two", plugin(loss("second")), entry_point="same")
    found = statuses(distributions, "cse-two:same")
    assert (found["cse-one:same"], found["cse-two:same"]) == ("active", "blocked")
    monkeypatch.setenv("CSE_DISABLE_PLUGINS", " cse-one, , typo")
    manager = distributions.load()
    assert [info.status for info in manager.infos] == ["blocked", "active", "active"]
    assert manager.infos[0].reason == "left out by CSE_DISABLE_PLUGINS=cse-one, , typo"
    assert manager.infos[0].fix == "unset CSE_DISABLE_PLUGINS"


def test_parts_of_one_name_stay(distributions: Distributions) -> None:
    distributions.add("cse-ant", plugin(loss("infonce"), loss("other")))
    distributions.add("cse-one", plugin(loss("twins"), loss("own")))
    store = 'StoreSpec(name="twins", summary="s", factory="m:C")'
    distributions.add("cse-stores", plugin(store, hook="cse_negative_stores"))
    distributions.add("cse-two", plugin(loss("twins")), version="0.2")
    ant, one, stores, own, two = distributions.load().infos
    assert {info.status for info in (ant, one, stores, own, two)} == {"active"}
    assert [part.name for part in one.parts] == ["twins", "own"]
    registry = Registry.from_plugins([ant, own])
    assert registry.find("loss", "infonce").distribution == "cse-toolkit", "it keeps its names"
    assert registry.find("loss", "cse-ant/infonce").distribution == "cse-ant"


def test_left_overs_are_passed_over_and_what_is_there_twice_is_loaded_once(
    distributions: Distributions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (distributions.add("cse-gone", GOOD) / "METADATA").unlink()
    (distributions.add("cse-odd", GOOD) / "METADATA").write_bytes(b"\xff\xfe")
    distributions.add("cse-good", GOOD)
    active = {"cse-good:good": "active", "cse-toolkit:basics": "active"}
    assert statuses(distributions) == active
    distributions.metadata("cse-good", "good = cse_good.plugin", version="0.2.0")
    paths = [str(tmp_path), f"{tmp_path}/."]
    monkeypatch.setattr(
        "cse_core.registry.discovery.distributions",
        lambda: importlib.metadata.distributions(path=paths),
    )
    assert statuses(distributions) == active


def test_one_module_under_two_names_is_loaded_once(distributions: Distributions) -> None:
    distributions.add("cse-one", GOOD)
    distributions.metadata("cse-copy", "copy = cse_one.plugin")
    copy, one, _ = distributions.load().infos
    assert (copy.status, one.status) == ("active", "broken")
    assert "already registered" in one.reason


def test_what_a_plugin_prints_does_not_reach_the_output(
    distributions: Distributions, capsys: pytest.CaptureFixture[str]
) -> None:
    distributions.add("cse-chatty", "print('hello')\n" + GOOD)
    distributions.load()
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_find_takes_key_entry_point_and_distribution(distributions: Distributions) -> None:
    distributions.add("cse-good", GOOD, entry_point="fine")
    manager = distributions.load()
    for name in ("fine", "cse-good", "CSE_good", "cse-good:fine"):
        assert [info.key for info in manager.find(name)] == ["cse-good:fine"]
    with pytest.raises(CseError, match="did you mean cse-good"):
        manager.find("cse-god")

import sys
from pathlib import Path

import pytest

from cse_core.errors import CseError
from cse_core.loading import load_factory, package_path, records_of_files
from cse_core.records import StudySpec


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "loading_example"
    (folder / "recipes").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (folder / "recipes" / "a.toml").write_text("x = 1\n")
    (tmp_path / "loading_needs.py").write_text("import no_such_thing.deep\n")
    (tmp_path / "loading_bug.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_factories(package: Path) -> None:
    assert load_factory("cse_core.errors:CseError") is CseError
    for factory, message in {
        "cse_core.errors": "loss.x: a factory is written package.module:Class",
        ":C": "a factory is written package.module:Class",
        "m:": "a factory is written package.module:Class",
        "cse_core.errors:Nothing": "module cse_core.errors has no Nothing",
        "cse_core.no_such:C": "cannot be imported: .*reinstall its plugin",
        "loading_needs:C": "No module named .no_such_thing.; .*what has the module no_such_thing",
    }.items():
        with pytest.raises(CseError, match=message):
            load_factory(factory, where="loss.x")
    with pytest.raises(ZeroDivisionError):
        load_factory("loading_bug:C")


def test_package_path_finds_files_and_folders_without_import(package: Path) -> None:
    assert package_path("loading_example:recipes/a.toml") == package / "recipes" / "a.toml"
    assert package_path("loading_example:recipes") == package / "recipes"
    assert "loading_example" not in sys.modules
    for path, message in {
        "loading_example": "package data is written package:folder/file",
        "loading_example:": "package data is written",
        "loading_example:../x": "package data is written",
        "loading_example:/etc/passwd": "package data is written",
        "no_such_package:x": "no package no_such_package",
        "no_such.package:x": "no package no_such.package",
        "loading_bug:x": "no package loading_bug",
        "loading_example:b.toml": "package loading_example has no b.toml",
    }.items():
        with pytest.raises(CseError, match=message):
            package_path(path)


def test_records_of_files_are_called_after_them_and_say_what_they_begin_with(package: Path) -> None:
    places = [f"table-{number}" for number in (2, 3)]
    for name in places:
        (package / f"{name}.toml").write_text(f'# Lee (2024)\nsummary = "{name}"\n\nx = 1\n')
    found = [
        StudySpec(name=f"lee/{n}", summary=n, path=f"loading_example:./{n}.toml", paper="Lee")
        for n in places
    ]
    about = {"prefix": "lee/", "paper": "Lee"}
    assert records_of_files(StudySpec, "loading_example:.", **about) == found
    assert records_of_files(StudySpec, "loading_example:.", "table-3", **about) == found[1:]
    for names, message in (
        ((), 'a.toml: does not say what it is; begin it with summary = "..."'),
        (["b"], "package loading_example has no recipes/b.toml"),
    ):
        with pytest.raises(CseError, match=message):
            records_of_files(StudySpec, "loading_example:recipes", *names)

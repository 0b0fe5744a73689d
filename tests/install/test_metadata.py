"""The metadata of all distributions agree: licence, addresses, classifiers, versions, ranges."""

import re
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from cse_core import __version__
from docs.packages import ROOT

FOLDERS = [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]


def project(folder: Path) -> dict[str, Any]:
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def test_what_copies_the_metadata_finds_nothing_to_do() -> None:
    spec = spec_from_file_location("docs_metadata", ROOT / "docs/metadata.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.outdated() == [], "run python docs/metadata.py"


def test_the_extra_all_installs_every_plugin() -> None:
    root, plugins = project(ROOT), {project(folder)["name"]: project(folder) for folder in FOLDERS}
    wanted = [Requirement(each) for each in root["optional-dependencies"]["all"]]
    for each in wanted:  # which grows by what each of these extras of the root installs
        assert each.extras <= {*plugins[each.name].get("optional-dependencies", {})}, each
        extras = each.extras if each.name == root["name"] else ()
        wanted += [Requirement(own) for n in extras for own in root["optional-dependencies"][n]]
    assert {each.name for each in wanted} == {*plugins}, "run python docs/metadata.py"


def test_distributions_describe_themselves() -> None:
    for folder in FOLDERS:
        own = project(folder)
        assert own["readme"] == "README.md" and (folder / "README.md").is_file(), folder
        assert own["description"] and "\n" not in own["description"], folder
        assert own["license-files"] == ["LICENSE"] and (folder / "LICENSE").is_file(), folder
        # An SPDX expression replaces the classifiers of licences: PEP 639 refuses both together.
        assert own["license"] == "Apache-2.0", folder
        assert not [each for each in own["classifiers"] if each.startswith("License ::")], folder
        package = folder / own["name"].replace("-", "_")
        assert (package / "py.typed").is_file() or folder == ROOT, folder
    major, minor, _ = (int(part) for part in __version__.split("."))
    for folder in FOLDERS[1:]:
        own = project(folder)
        assert own["name"] == f"cse-{folder.name}" and own["version"] == __version__
        (needed,) = (
            Requirement(each) for each in own["dependencies"] if each.startswith("cse-toolkit")
        )
        assert needed.specifier == SpecifierSet(f">={major}.{minor},<{major}.{minor + 1}"), folder


def test_python_versions_are_those_that_are_tested() -> None:
    head = "Programming Language :: Python :: 3."
    named = {each[len(head) - 2 :] for each in project(ROOT)["classifiers"] if head in each}
    workflow = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    assert named == set(yaml.safe_load(workflow)["jobs"]["test"]["strategy"]["matrix"]["python"])
    lowest = min(named, key=lambda version: int(version.partition(".")[2]))
    assert project(ROOT)["requires-python"] == f">={lowest}"


def test_citation_addresses_and_changelog() -> None:
    urls = project(ROOT).get("urls", {})
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(url.startswith("https://") for url in urls.values())
    assert citation.get("repository-code") == urls.get("Repository")
    assert ("repo_url:" in site) == ("Repository" in urls)
    assert citation["cff-version"] == "1.2.0"
    assert str(citation["version"]) == __version__
    assert citation["license"] == project(ROOT)["license"]
    assert citation["authors"] == project(ROOT)["authors"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*\b{re.escape(__version__)}\b", changelog, flags=re.M)


def test_the_files_of_the_forge_can_be_read() -> None:
    def files() -> Iterator[Path]:
        yield from (ROOT / ".github").rglob("*.yml")

    assert {path.name for path in files()} >= {"test.yml", "bug.yml", "method.yml", "config.yml"}
    for path in files():
        assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict), path
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.M))
    workflow = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"run: make ([\w-]+)", workflow)) <= targets

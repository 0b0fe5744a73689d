"""What plugins of this repository import of the toolkit: three doors, and no other plugin."""

from cse_testkit.doors import behind_the_doors

from docs.packages import ROOT


def test_plugins_import_the_doors_alone() -> None:
    packages = sorted(path.name for path in ROOT.glob("plugins/*/cse_*") if path.is_dir())
    found = {package: behind_the_doors(package) for package in packages}
    assert len(packages) == len(list(ROOT.glob("plugins/*/pyproject.toml")))
    assert not any(found.values()), found

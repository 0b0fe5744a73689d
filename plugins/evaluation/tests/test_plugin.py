"""The plugin as a distribution, its command and its suites."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cse_evaluation import probe
from cse_testkit import PluginSuite, SuiteSuite


@pytest.fixture(scope="module", autouse=True)
def three_folds(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    OwnSuite.folder, latin = files, tmp_path_factory.mktemp("latin")
    shutil.copy(files / "stsb.test.tsv", latin / "cstsb.dev.tsv")
    globals()["TestChinese"].folder = latin  # the kit's encoder knows no Chinese
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "FOLDS", 3)
        yield


class TestPlugin(PluginSuite):
    distribution = "cse-evaluation"


class OwnSuite(SuiteSuite):
    folder = Path()


for name in ("sts", "chinese", "transfer", "classify", "retrieval"):
    globals()[f"Test{name.title()}"] = type(name, (OwnSuite,), {"suite": name})

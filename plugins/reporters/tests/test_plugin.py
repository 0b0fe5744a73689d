"""The kit over the distribution and its reporters."""

from pathlib import Path

import pytest
from cse_testkit import PluginSuite, ReporterSuite


class TestPlugin(PluginSuite):
    distribution = "cse-reporters"


class TestCsv(ReporterSuite):
    reporter = "csv"


class TestCsvElsewhere(ReporterSuite):
    reporter, options = "csv", {"file": "other.csv"}


class OfAPackage(ReporterSuite):
    """A reporter named like the package that it needs."""

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip(self.reporter, reason=f"{self.reporter} is not installed")


class TestTensorboard(OfAPackage):
    reporter, options = "tensorboard", {"folder": "events"}


class TestWandb(OfAPackage):
    reporter, options = "wandb", {"offline": True}


class TestMlflow(OfAPackage):
    reporter = "mlflow"

    @pytest.fixture(autouse=True)
    def _local(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        monkeypatch.setattr(type(self), "options", {"uri": f"{tmp_path.as_uri()}/mlruns"})


class TestTrackio(OfAPackage):
    reporter = "trackio"

    @pytest.fixture(autouse=True)
    def _local(self, _installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("trackio.utils", "trackio.sqlite_storage"):
            monkeypatch.setattr(f"{module}.TRACKIO_DIR", tmp_path)

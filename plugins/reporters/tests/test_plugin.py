"""The kit over the distribution and its reporters."""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_testkit import PluginSuite, ReporterSuite


class TestPlugin(PluginSuite):
    distribution = "cse-reporters"


class TestCsv(ReporterSuite):
    reporter = "csv"


class TestCsvElsewhere(ReporterSuite):
    reporter, options = "csv", {"file": "other.csv"}


class TestTensorboard(ReporterSuite):
    reporter, options = "tensorboard", {"folder": "events"}

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("tensorboard", reason="tensorboard is not installed")


class TestWandb(ReporterSuite):
    reporter, options = "wandb", {"offline": True}

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("wandb", reason="wandb is not installed")


class TestMlflow(ReporterSuite):
    @pytest.fixture(autouse=True)
    def _installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("mlflow", reason="mlflow is not installed")
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        monkeypatch.setattr(type(self), "options", {"uri": f"{tmp_path.as_uri()}/mlruns"})

    reporter = "mlflow"


class TestTrackio(ReporterSuite):
    reporter = "trackio"

    @pytest.fixture(autouse=True)
    def _installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("trackio", reason="trackio is not installed")
        for module in ("trackio.utils", "trackio.sqlite_storage"):
            monkeypatch.setattr(f"{module}.TRACKIO_DIR", tmp_path)

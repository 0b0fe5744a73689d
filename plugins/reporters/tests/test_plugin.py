"""The kit over the distribution and its reporters."""

from __future__ import annotations

import pytest
from cse_testkit import PluginSuite, ReporterSuite


class TestPlugin(PluginSuite):
    distribution = "cse-reporters"


class TestCsv(ReporterSuite):
    reporter = "csv"


class TestCsvElsewhere(ReporterSuite):
    reporter = "csv:file=other.csv"


class TestTensorboard(ReporterSuite):
    reporter = "tensorboard:folder=events"

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("tensorboard", reason="tensorboard is not installed")

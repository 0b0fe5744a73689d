"""The plugin's records, and that announcing them costs nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys

from cse_starter import plugin
from cse_testkit import PluginSuite


class TestPlugin(PluginSuite):
    distribution = "cse-starter"


def test_records_say_what_they_are() -> None:
    (encoder,) = plugin.cse_encoders()
    assert (encoder.name, encoder.path, encoder.synthetic) == (
        "starter",
        "cse_starter:encoder",
        False,
    )
    assert "small" in encoder.summary
    (dataset,) = plugin.cse_datasets()
    assert (dataset.name, dataset.synthetic) == ("starter", True)
    assert "synthetic" in dataset.summary


def test_the_factory_makes_rows_and_pairs() -> None:
    (dataset,) = plugin.cse_datasets()
    module, _, name = dataset.factory.partition(":")
    corpus = getattr(importlib.import_module(module), name)()
    assert set(next(iter(corpus.rows()))) == {"text", "document", "title", "fraternal"}
    assert {"sentence1", "sentence2", "score", "subset"} == set(corpus.pairs("dev")[0])


def test_the_plugin_module_imports_neither_torch_nor_the_grammar() -> None:
    code = (
        "import sys, cse_starter.plugin as p; p.cse_encoders(); p.cse_datasets();"
        "print([m for m in ('torch', 'transformers', 'cse_starter.corpus') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"

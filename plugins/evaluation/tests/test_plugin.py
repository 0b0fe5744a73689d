"""The plugin as a distribution, its command and its suites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cse_evaluation import probe
from cse_testkit import PluginSuite, SuiteSuite, tiny_corpus

TEXTS = list(tiny_corpus(60).column("text"))


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A data folder with a small file of each suite, and three folds."""
    folder = tmp_path_factory.mktemp("data")
    pairs = ["sentence1\tsentence2\tscore"]
    pairs += [f"{TEXTS[n]}\t{TEXTS[n + 1]}\t{n % 6}" for n in range(12)]
    labelled = ["label\ttext"] + [f"{n % 2}\t{text}" for n, text in enumerate(TEXTS[:12])]
    titled = ["text\tdocument\ttitle"] + [
        f"{text}\t{n // 5}\tabout {TEXTS[n // 5].split()[-1]} {n // 5}"
        for n, text in enumerate(TEXTS)
    ]
    for name, lines in (
        ("stsb.test", pairs), ("cstsb.dev", pairs), ("mr", labelled), ("own", labelled),
        ("news", titled),
    ):  # fmt: skip
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    OwnSuite.folder = folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "FOLDS", 3)
        yield


class TestPlugin(PluginSuite):
    distribution = "cse-evaluation"


class OwnSuite(SuiteSuite):
    folder = Path()


for name in ("sts", "chinese", "transfer", "classify", "retrieval"):
    globals()[f"Test{name.title()}"] = type(name, (OwnSuite,), {"suite": name})

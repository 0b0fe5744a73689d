"""Names of the hub: their parts, the library's own cache, and a stand-in for the hub itself."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import datasets
import pytest
from huggingface_hub import constants

from cse_core.errors import CseError
from cse_core.texts import DataOptions, Wanted
from cse_defaults.texts import load_corpus
from cse_defaults.texts.hub import SPLITS, HubName, HubRows, hub_rows

COMMIT, OTHER = "0123456789abcdef" * 2 + "01234567", "f" * 40
ROWS = {
    "train": [{"text": f"sentence {n}", "n": n} for n in range(5)],
    "validation": [{"sentence1": "a", "sentence2": f"b {n}", "score": n / 2} for n in range(4)],
    "test": [{"sentence1": "a", "sentence2": f"c {n}", "score": n / 2} for n in range(3)],
}


NAMES = {
    "owner/name": (("owner/name", "", "", ""), "name"),
    "o/n:en-de": (("o/n", "en-de", "", ""), "n-en-de"),
    "o/n@validation": (("o/n", "", "validation", ""), "n.dev"),
    "o/n:c@test#v1.0": (("o/n", "c", "test", "v1.0"), "n-c.test"),
    f"o/n#{COMMIT}": (("o/n", "", "", COMMIT), "n"),
    "o/n#refs/convert/parquet": (("o/n", "", "", "refs/convert/parquet"), "n"),
}


def test_names_of_the_hub_and_others() -> None:
    for text, (parts, set_name) in NAMES.items():
        found = HubName.parse(text)
        assert found == HubName(*parts) and str(found) == text
        assert found is not None and found.set_name == set_name
    for text in ("name", "a/b/c", "a/b@", "a/b:", "a/b#", "a/b@c:d", "a/b c", "/b"):
        assert HubName.parse(text) is None, text


def cached(
    folder: Path, work: Path, name: str, configuration: str, splits: Mapping[str, list[Any]]
) -> None:
    """Write what the library keeps of a data set that it loaded from the hub."""
    owner, _, own = name.partition("/")
    there = folder / f"{owner}___{own}" / configuration / "0.0.0" / COMMIT
    there.mkdir(parents=True)
    for split, rows in splits.items():
        file = work / f"{split}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        made = datasets.load_dataset(
            "json", data_files={split: str(file)}, cache_dir=str(work), split=split
        )
        (there / f"{own}-{split}.arrow").write_bytes(
            Path(made.cache_files[0]["filename"]).read_bytes()
        )
    about = {
        "dataset_name": own,
        "config_name": configuration,
        "version": {"version_str": "0.0.0", "major": 0, "minor": 0, "patch": 0},
        "splits": {
            split: {"name": split, "num_bytes": 1, "num_examples": len(rows), "dataset_name": own}
            for split, rows in splits.items()
        },
    }
    (there / "dataset_info.json").write_text(json.dumps(about), encoding="utf-8")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The library's cache, and no network; its switches are found as they were."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.get_session", refuse)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    work = tmp_path / "work"
    work.mkdir()
    cached(tmp_path / "cache", work, "owner/name", "default", {"train": ROWS["train"]})
    pairs = {split: ROWS[split] for split in ("validation", "test")}
    cached(tmp_path / "cache", work, "owner/pairs", "default", pairs)
    triplets = [{"sent0": " a ", "sent1": "b", "hard_neg": "c"}]
    cached(tmp_path / "cache", work, "owner/nli", "triplet", {"whole": triplets})
    yield tmp_path / "cache"
    assert (constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE) == (False, False)


def load(*paths: str) -> Any:
    return load_corpus(DataOptions(path=paths))


@pytest.mark.usefixtures("cache")
def test_rows_of_the_librarys_cache_and_their_commit() -> None:
    for name in ("owner/name", "owner/name@train", f"owner/name@train#{COMMIT}"):
        corpus = load(name)
        assert list(corpus.column("text")) == [row["text"] for row in ROWS["train"]]
        assert corpus.report.commits == {name: COMMIT}
    with pytest.raises(
        CseError, match=r"owner/name@dev: has no split dev; its splits: train; name on"
    ):
        load("owner/name@dev")
    with pytest.raises(CseError, match=f"only commit {COMMIT} is in the cache"):
        load(f"owner/name#{OTHER}")
    with pytest.raises(CseError, match="cannot load this data set.*hub cannot be reached: name a"):
        load("owner/none")
    triplets = load("owner/nli:triplet")
    assert triplets.table.to_pylist() == [{"text": "a", "positive": "b", "negative": "c"}]


@pytest.mark.usefixtures("cache")
def test_the_split_that_is_meant_where_none_is_named() -> None:
    for split, wanted in (("dev", "validation"), ("test", "test")):
        rows, resolved = hub_rows(HubName("owner/pairs"), SPLITS[split])
        assert rows.to_list() == ROWS[wanted]
        assert resolved == HubName("owner/pairs", "", wanted, COMMIT)
    source = HubRows()
    (*_, last) = source.rows("owner/pairs", Wanted(split="dev"))
    assert last == ("owner/pairs, row 4", ROWS["validation"][-1])
    assert (source.title("owner/pairs"), source.commit("owner/pairs")) == ("pairs.dev", COMMIT)
    with pytest.raises(CseError, match="no split train; its splits: validation, test"):
        load("owner/pairs")

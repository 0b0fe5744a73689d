"""``cse data fetch simcse``: made-up files in the form of the authors' become rows."""

import gzip
import json
from pathlib import Path
from typing import Any

from cse_cli.commands.fetch import fetchable
from cse_cli.texts.fetching import Sources, Web, fetch_file, read_sources
from cse_core.loading import package_path
from tests.fixtures.studies import plugins

RAW = {
    "wiki1m_for_simcse.txt": 'A boat lies here.\n\n "So it is", he said.\n',
    "nli_for_simcse.csv": 'sent0,sent1,hard_neg\n"One, two.",Numbers.,"A ""word""."\n',
}
ROWS: dict[str, list[Any]] = {
    "wiki1m.jsonl.gz": [{"text": "A boat lies here."}, {"text": '"So it is", he said.'}],
    "nli.jsonl.gz": [{"text": "One, two.", "positive": "Numbers.", "negative": 'A "word".'}],
}


def sources() -> Sources:
    path = fetchable(plugins())["simcse"]
    return read_sources(package_path(path, where="simcse"))


def test_the_authors_texts_become_rows(tmp_path: Path) -> None:
    for name, text in RAW.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    table = sources()
    assert [file.name for file in table.files] == list(ROWS)
    for file in table.files:
        content, record = fetch_file(file, Web(str(tmp_path)), None)
        lines = gzip.decompress(content).decode("utf-8").splitlines()
        assert [json.loads(line) for line in lines] == ROWS[file.name]
        assert record["rows"] == len(ROWS[file.name])


def test_every_file_is_pinned_by_a_commit() -> None:
    for file in sources().files:
        for place in file.places:
            assert len(place.revision) == 40
            assert all(f"/{place.revision}/" in url for url in place.urls)

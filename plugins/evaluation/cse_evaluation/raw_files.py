"""Tables as their owners publish them, as the rows that the suites read.

A reader gets the downloaded files, or those of an archive, as bytes by name, and the options of
its table of sources. It yields rows, a value for each column.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

from cse_core.errors import CseError

Raw = Mapping[str, bytes]
"""The content of each file by its name, with its folders."""


def lines_of(content: bytes) -> list[str]:
    r"""Return the lines of a text in UTF-8, or else in Windows' Latin; ``\n`` ends one."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    return [line.rstrip("\r") for line in text.split("\n")]


def file_of(raw: Raw, *endings: str) -> bytes:
    """Return the one file whose name ends so.

    Raises:
        CseError: If there is none.
    """
    for name in sorted(raw):
        base = name.rpartition("/")[2]
        if base in endings and not name.startswith("__MACOSX"):
            return raw[name]
    held = ", ".join(sorted(raw)[:4])
    raise CseError(f"no file {endings[0]} in what was fetched, but {held}")


def graded(raw: Raw, *, parts: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield pairs of SemEval: a file of sentences and one of scores for each part.

    A pair that has no score was not judged, and is left out.
    """
    for part in parts:
        names = [f"{year}.{{}}.{part}.txt" for year in ("STS", "STS2016")]
        pairs = lines_of(file_of(raw, *(name.format("input") for name in names)))
        scores = lines_of(file_of(raw, *(name.format("gs") for name in names)))
        for pair, score in zip(pairs, scores, strict=False):
            if score.strip() and pair.strip():
                first, second = pair.split("\t")[:2]
                yield part, str(float(score)), first.strip(), second.strip()


def benchmark(raw: Raw, *, part: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield pairs of the STS benchmark; a subset is genre, file and year."""
    for line in lines_of(file_of(raw, f"sts-{part}.csv")):
        if line.strip():
            genre, file, year, _, score, first, second = line.split("\t")[:7]
            subset = "/".join((genre, file, year))
            yield subset, str(float(score)), first.strip(), second.strip()


def sick(raw: Raw, *, part: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield pairs of SICK: of the one file with all parts, or of the file of this part."""
    names = {"TRAIN": "train", "TRIAL": "trial", "TEST": "test_annotated"}
    head, *rows = lines_of(file_of(raw, "SICK.txt", f"SICK_{names[part]}.txt"))
    place = {name: number for number, name in enumerate(head.split("\t"))}
    label = next(n for n in ("entailment_label", "entailment_judgment") if n in place)
    for line in rows:
        if not line.strip():
            continue
        fields = line.split("\t")
        if "SemEval_set" in place and fields[place["SemEval_set"]].strip() != part:
            continue
        wanted = (label, "relatedness_score", "sentence_A", "sentence_B")
        entailment, score, first, second = (fields[place[name]].strip() for name in wanted)
        yield entailment, str(float(score)), first, second


def by_file(raw: Raw, *, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield labelled texts: a file for each label."""
    for name, label in labels.items():
        for line in lines_of(file_of(raw, name)):
            if line.strip():
                yield label, line.strip()


def label_first(raw: Raw, *, fine: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield labelled texts: each line is the label, a space and the text.

    With ``fine`` labels are ``NUM:dist``, and the part before the colon stands before them.
    """
    (content,) = raw.values()
    for line in lines_of(content):
        label, _, text = line.strip().partition(" ")
        if text.strip():
            yield (label.partition(":")[0], label, text.strip()) if fine else (label, text.strip())


def paraphrases(raw: Raw) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of the Microsoft Research Paraphrase Corpus."""
    (content,) = raw.values()
    for row in csv.reader(lines_of(content)[1:], delimiter="\t", quoting=csv.QUOTE_NONE):
        if row:
            label, _, _, first, second = row
            yield label, first.strip(), second.strip()

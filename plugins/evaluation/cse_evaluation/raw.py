"""Tables and documents as their owners publish them, as the rows that the suites read.

A reader gets the downloaded files, or those of an archive, as bytes by name, and the options of
its table of sources. It yields rows, a value for each column.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import zip_longest
from typing import Any

from cse_core.errors import CseError

Raw = Mapping[str, bytes]
"""The content of each file by its name, with its folders."""
_OPENING = re.compile(r'<doc id="(?P<id>[^"]*)".*title="(?P<title>[^"]*)">')
_END = re.compile(r"""(?<=[.!?])["')\]]*\s+(?=["'(\[]*[A-Z0-9£$])""")
_SHORT = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Inc|Co|Ltd|Prof|Gen|Gov|Sen|U\.S|[A-Z])\.$")
"""Abbreviations and initials, whose full stop ends no sentence."""
_HEADING = 80
"""Characters of a heading at most."""


def lines_of(content: bytes) -> list[str]:
    r"""Return the lines of a text in UTF-8, or else in Windows' Latin; ``\n`` ends one."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    return [line.rstrip("\r") for line in text.split("\n")]


def file_of(raw: Raw, *endings: str) -> bytes:
    """Return the one file whose name ends so."""
    for name in sorted(raw):
        base = name.rpartition("/")[2]
        if base in endings and not name.startswith("__MACOSX"):
            return raw[name]
    names = ", ".join(sorted(raw)[:4])
    raise CseError(f"no file {endings[0]} in what was fetched, but {names}")


def graded(raw: Raw, *, parts: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield pairs of SemEval: a file of sentences and one of scores for each part.

    A pair that has no score was not judged, and is left out. Quotes belong to the sentences.
    """
    for part in parts:
        names = [f"{year}.{{}}.{part}.txt" for year in ("STS", "STS2016")]
        pairs = lines_of(file_of(raw, *(name.format("input") for name in names)))
        scores = lines_of(file_of(raw, *(name.format("gs") for name in names)))
        for number, (pair, score) in enumerate(zip_longest(pairs, scores), 1):
            where = f"STS.input.{part}.txt, line {number}"
            if bool((pair or "").strip()) < bool((score or "").strip()) or (pair and score is None):
                missing = "score" if pair else "pair of sentences"
                raise CseError(f"has no {missing} in this line: files of other versions",
                               where=where)  # fmt: skip
            if pair and score and score.strip():
                first, second, *_ = _fields(pair, 2, where)
                yield part, _number(score, where), first.strip(), second.strip()


def benchmark(raw: Raw, *, part: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield pairs of the STS benchmark; a subset is genre, file and year.

    Its csv files have tabs between fields, no header, and quotes that belong to the sentences.
    """
    file = f"sts-{part}.csv"
    for number, line in enumerate(lines_of(file_of(raw, file)), 1):
        if line.strip():
            where = f"{file}, line {number}"
            genre, source, year, _, score, first, second, *_ = _fields(line, 7, where)
            subset = "/".join((genre, source, year))
            yield subset, _number(score, where), first.strip(), second.strip()


def sick(raw: Raw, *, part: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield pairs of SICK: of the one file with all parts, or of the file of this part."""
    names = {"TRAIN": "train", "TRIAL": "trial", "TEST": "test_annotated"}
    head, *rows = lines_of(file_of(raw, "SICK.txt", f"SICK_{names[part]}.txt"))
    place = {name: number for number, name in enumerate(head.split("\t"))}
    label = next((n for n in ("entailment_label", "entailment_judgment") if n in place), "")
    wanted = (label, "relatedness_score", "sentence_A", "sentence_B")
    if not place.keys() >= {*wanted}:
        raise CseError("has no header of SICK", where="SICK, line 1", value=head)
    for number, line in enumerate(rows, 2):
        if not line.strip():
            continue
        where = f"SICK, line {number}"
        fields = _fields(line, len(place), where)
        if "SemEval_set" in place and fields[place["SemEval_set"]].strip() != part:
            continue
        entailment, score, first, second = (fields[place[name]].strip() for name in wanted)
        yield entailment, _number(score, where), first, second


def _fields(line: str, count: int, where: str) -> list[str]:
    """Split a line at its tabs into so many fields at least."""
    fields = line.split("\t")
    if len(fields) < count:
        what = f"{len(fields)} fields, and its publisher has {count}"
        raise CseError(what, where=where, value=line[:60])
    return fields


def _number(text: str, where: str) -> str:
    """Return a score as Python writes it."""
    try:
        return str(float(text))
    except ValueError:
        raise CseError("is not a score", where=where, value=text.strip()) from None


def labelled_pairs(raw: Raw, *, file: str) -> Iterator[dict[str, Any]]:
    """Yield pairs of SimCLUE that are labelled 0 or 1: an object a line."""
    for number, line in enumerate(lines_of(file_of(raw, file)), 1):
        if line.strip():
            row = json.loads(line)
            label = float(_number(str(row["label"]), f"{file}, line {number}"))
            yield {"sentence1": row["sentence1"], "sentence2": row["sentence2"], "score": label}


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


def reviews(raw: Raw, *, part: str) -> Iterator[dict[str, str]]:
    """Yield IMDB's reviews of a part: a file for each, in the folder of its label."""
    for name in sorted(raw):
        folder, _, _ = name.rpartition("/")
        for label in ("neg", "pos"):
            if folder.endswith(f"/{part}/{label}"):
                yield {"label": label, "text": " ".join(lines_of(raw[name])).strip()}


def rated(raw: Raw, *, part: str) -> Iterator[dict[str, str]]:
    r"""Yield Yelp's reviews of a part: 1 for one or two stars, 2 for more, and the text."""
    rows = file_of(raw, f"{part}.csv").decode("utf-8").splitlines(keepends=True)
    for label, text in csv.reader(rows):
        yield {"label": label, "text": text.replace("\\n", " ").strip()}


def paraphrases(raw: Raw) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of the Microsoft Research Paraphrase Corpus."""
    (content,) = raw.values()
    for row in csv.reader(lines_of(content)[1:], delimiter="\t", quoting=csv.QUOTE_NONE):
        if row:
            label, _, _, first, second = row
            yield label, first.strip(), second.strip()


def sentences_of(paragraph: str) -> list[str]:
    """Split a paragraph where a full stop, ! or ? is followed by a space and a capital letter."""
    parts: list[str] = []
    start = 0
    for match in _END.finditer(paragraph):
        piece = paragraph[start : match.start()]
        if _SHORT.search(piece):
            continue
        parts.append(paragraph[start : match.end()].strip())
        start = match.end()
    parts.append(paragraph[start:].strip())
    return [sentence for sentence in parts if sentence]


def stories(raw: Raw) -> Iterator[dict[str, Any]]:
    """Yield news stories: ``LABEL/NUMBER.txt``, the title in the first line.

    One that is there twice is taken once.
    """
    seen: set[str] = set()
    for name in sorted(raw):
        *_, label, file = ("", *name.split("/"))
        if not re.fullmatch(r"\d+\.txt", file) or name.startswith("__MACOSX"):
            continue
        title, *rest = (line.strip() for line in lines_of(raw[name]))
        paras = [sentences_of(line) for line in rest if line]
        text = repr(paras)
        if not title or not paras or text in seen:
            continue
        seen.add(text)
        number = file.removesuffix(".txt")
        yield {"id": f"{label}/{number}", "label": label, "title": title.strip("."), "paras": paras}


def articles(raw: Raw) -> Iterator[dict[str, Any]]:
    """Yield articles of WikiExtractor's text that have a sentence; a short line is a heading."""
    for name in sorted(raw):
        opening: re.Match[str] | None = None
        lines: list[str] = []
        for line in lines_of(raw[name]):
            if match := _OPENING.match(line):
                opening, lines = match, []
            elif line == "</doc>" and opening is not None:
                sections = _sections(lines[1:])
                if sections:
                    title = unescape(opening["title"])
                    yield {"id": opening["id"], "title": title, "sections": sections}
                opening = None
            elif line.strip():
                lines.append(unescape(line.strip()))


def _sections(lines: list[str]) -> list[list[Any]]:
    """Return headings with their sentences; a heading without any is left out."""
    sections: list[list[Any]] = [["", []]]
    for number, line in enumerate(lines):
        short = len(line) <= _HEADING and line.endswith(".") and len(line.split()) <= 10
        if short and number and not re.search(r"[.!?,;]\s", line):
            sections.append([line.removesuffix("."), []])
        elif line[-1] in ".!?\"')":
            sections[-1][1].extend(sentences_of(line))
    return [section for section in sections if section[1]]

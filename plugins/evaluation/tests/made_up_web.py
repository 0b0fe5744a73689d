"""A stand-in for the hosts of the public sets: made-up files in the forms of the real ones."""

import io
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import cse_evaluation

from cse_cli.texts.fetching import SourceFile, read_sources
from tests.fixtures.serving import Quiet, serving

TABLES = Path(cse_evaluation.__file__).parent / "sources"
TOPICS = ("dog", "boat", "violin", "judge", "garden", "goal", "planet")


def text(number: int) -> str:
    return f"The {TOPICS[number % 7]} of house {number} is old."


def zipped(files: Mapping[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


def tarred(files: Mapping[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


def joined(lines: list[str], encoding: str = "utf-8") -> bytes:
    return "".join(f"{line}\n" for line in lines).encode(encoding)


def split(rows: int, parts: int) -> list[range]:
    """Return numbers of rows in so many parts."""
    ends = [rows * part // parts for part in range(parts + 1)]
    return [range(first, last) for first, last in zip(ends, ends[1:], strict=False)]


def semeval(file: SourceFile) -> bytes:
    files = {}
    prefix = "STS2016" if "2016" in file.places[0].urls[0] else "STS"
    parts = file.options["parts"]
    for part, numbers in zip(parts, split(file.rows or 0, len(parts)), strict=True):
        pairs = [f"{text(n)}\t{text(n + 7)}\tsource" for n in numbers]
        scores = [f"{n % 6}" for n in numbers]
        if prefix == "STS2016":  # pairs that nobody judged
            pairs, scores = [*pairs, "never\tjudged"], [*scores, ""]
        files[f"test/{prefix}.input.{part}.txt"] = joined(pairs)
        files[f"test/{prefix}.gs.{part}.txt"] = joined(scores)
    return zipped({**files, "__MACOSX/._x": b"", "readme.txt": b"made up"})


def benchmark(tables: list[SourceFile]) -> bytes:
    files = {}
    for file in tables:
        lines = [
            f"main-news\theadlines\t2013\t{n:04}\t{n % 6}\t{text(n)}\t{text(n + 7)}\tnote\tnote"
            for n in range(file.rows or 0)
        ]
        files[f"stsbenchmark/sts-{file.options['part']}.csv"] = joined(lines)
    return tarred(files)


def sick(tables: list[SourceFile]) -> bytes:
    head = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set"
    lines = [head, f"1\t{text(1)}\t{text(2)}\tNEUTRAL\t3.2\tTRAIN"]
    for file in tables:
        lines += [
            f"{n}\t{text(n)}\t{text(n + 7)}\tNEUTRAL\t{1 + n % 5}\t{file.options['part']}"
            for n in range(file.rows or 0)
        ]
    return zipped({"SICK.txt": joined(lines), "readme.txt": b"made up"})


def labelled(file: SourceFile) -> bytes:
    rows = range(file.rows or 0)
    if file.reader.endswith(":paraphrases"):
        head = "\N{BYTE ORDER MARK}Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
        return joined([head, *(f'{n % 2}\t1\t2\t"{text(n)}\t{text(n + 7)}' for n in rows)])
    if file.options.get("fine"):
        names = ("NUM:dist", "LOC:city", "DESC:manner")
        return joined([f"{names[n % 3]} {text(n)}" for n in rows])
    if file.reader.endswith(":by_file"):
        halves = zip(file.options["labels"], split(len(rows), 2), strict=True)
        return tarred({
            f"made-up/{name}": joined([f"clich\N{LATIN SMALL LETTER E WITH ACUTE}s, {text(n)} "
                                       for n in numbers], "latin-1")
            for name, numbers in halves
        })  # fmt: skip
    return joined([f"{n % 2} {text(n)}" for n in rows])


def stories() -> bytes:
    files = {"bbc/README.TXT": b"made up"}
    for number in range(40):
        label = ("business", "sport")[number % 2]
        story = (
            f"Title {number}\n\n{text(number)} Mr. Smith paid \N{POUND SIGN}3. It is so.\n\nEnd.\n"
        )
        files[f"bbc/{label}/{number:03}.txt"] = story.encode("latin-1")
    files["bbc/sport/900.txt"] = files["bbc/sport/001.txt"]  # there twice
    return zipped(files)


def articles(number: int) -> bytes:
    lines = []
    for place in range(3):
        name = f"Place {number} &amp; {place}"
        lines += [f'<doc id="{number}{place}" url="?curid=1" title="{name}">', name, "",
                  f"{text(number)} It has two doors.", "History.", f"{text(place)}", "", "</doc>",
                  f'<doc id="9{number}{place}" url="?curid=1" title="Empty">', "Empty", "",
                  "", "</doc>"]  # fmt: skip
    return joined(lines)


def made_up_web() -> dict[str, bytes]:
    """Return what each address of the tables of sources holds, without the scheme."""
    found: dict[str, bytes] = {}
    tables = {name: read_sources(TABLES / f"{name}.toml") for name in ("sts", "transfer", "docs")}
    sts = tables["sts"].files
    for file in sts:
        url = file.places[0].urls[0]
        if file.reader.endswith(":graded"):
            found[url] = semeval(file)
        elif file.reader.endswith(":benchmark"):
            found[url] = benchmark([f for f in sts if f.reader == file.reader])
        else:
            found[url] = sick([f for f in sts if f.reader == file.reader])
    for file in tables["transfer"].files:
        found[file.places[0].urls[0]] = labelled(file)
    news, wiki = tables["docs"].files
    found[news.places[0].urls[0]] = stories()
    found |= {url: articles(number) for number, url in enumerate(wiki.places[0].urls)}
    return {"/" + urlsplit(url).netloc + urlsplit(url).path: each for url, each in found.items()}


@contextmanager
def served(files: Mapping[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """Serve files by their paths; yields the address and the paths that were asked for."""
    asked: list[str] = []

    class Handler(Quiet):
        def do_GET(self) -> None:  # noqa: N802  # the name is the library's
            asked.append(self.path)
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

    with serving(Handler) as address:
        yield address, asked

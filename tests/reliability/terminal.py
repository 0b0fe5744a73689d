"""What reaches the terminal: every command, with hostile content through every input.

A case holds where stdout or stderr has a character that cannot be seen, on a terminal beyond
what colours and bars need. The check asks Unicode and shares nothing with what cleans.
"""

import json
import os
import pty
import re
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.reliability.inputs import PAIRS, TEXTS
from tests.reliability.outcomes import Answer, Outcome
from tests.reliability.server import SECONDS, Server

MARK = (
    "a\x1b[2Jb\x1b]0;t\x07c\rd\x9b1me\u202ef\u200bg\x7fh\u2028i\x1b]52;c;eA==\x07j\x1b[8mk\u2066l"
    "\x85m\x0bn\x08o\U000e0041p"
)
"""Titles, clipboards, colours, returns, directions, no width, tags: all in one text."""
MARKUP = "[/] [bold]x[/bold] [link=http://x]y[/link] [red] :smile: {task.description} %s"
NAMES = (f"{MARK}.txt", "[bold]x.txt", "\udcff\udc9b.txt")
_OWN = re.compile("\x1b\\[([0-9;]*m|\\?25[lh]|1A|2K)|\r")
"""What colours and bars send to a terminal."""
_HIDDEN_COLOUR = "\x1b[8m"
_VISIBLE_FORMAT = set(map(chr, (0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890,
                                0x891, 0x8E2, 0x110BD, 0x110CD)))  # fmt: skip


@dataclass(frozen=True)
class TerminalCase:
    """A command line; ``files`` lie beside, ``says`` must be printed, ``tty`` shows a terminal."""

    words: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    tty: bool = False

    @property
    def label(self) -> str:
        words = " ".join(self.words).encode("unicode_escape").decode()[:90]
        return f"{'tty ' if self.tty else ''}{words} {sorted(map(ascii, self.files))}{self.env}"


def steering(shown: str, *, tty: bool = False) -> set[str]:
    """Return the characters of an output that no terminal should get."""
    kept = _OWN.sub("", shown) if tty and _HIDDEN_COLOUR not in shown else shown
    unseen = {each for each in set(kept) if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp")}
    return unseen - {"\n", "\t"} - _VISIBLE_FORMAT


def tried(case: TerminalCase, server: Server) -> tuple[Outcome, Answer, str]:
    """Run a case in a folder of its own; the text names characters that got through."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in {"ok.txt": TEXTS, "pairs.tsv": PAIRS, **case.files}.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        if case.tty:
            answer = _on_terminal(case, folder, server)
        else:
            answer = server.call(case.words, folder, env=case.env)
    everything = answer.out + answer.err
    shown = ascii(sorted(steering(everything, tty=case.tty)))
    outcome = Outcome.CLEAR if answer.code else Outcome.ACCEPTED
    if answer.hung:
        outcome = Outcome.HUNG
    elif "Traceback (most recent call last)" in everything or answer.code not in (0, 1, 2):
        outcome = Outcome.TRACEBACK
    elif shown != "[]" or not all(each in everything for each in case.says):
        outcome = Outcome.SILENT
    return outcome, answer, shown


def _on_terminal(case: TerminalCase, folder: Path, server: Server) -> Answer:
    ours, theirs = pty.openpty()
    heard: list[bytes] = []

    def listen() -> None:
        while True:
            try:
                heard.append(os.read(ours, 65536))
            except OSError:
                return

    listener = threading.Thread(target=listen)
    listener.start()
    name = os.ttyname(theirs)
    answer = server.call(case.words, folder, env=case.env, streams={1: name, 2: name})
    os.close(theirs)
    listener.join(SECONDS)
    os.close(ours)
    return replace(answer, out=b"".join(heard).decode(errors="backslashreplace"))


def terminal_cases() -> list[TerminalCase]:
    found: list[TerminalCase] = []
    for make in (_options, _places, _files, _contents, _environments):
        found += make()
    return found


PLAIN = {
    "list-plugins": "", "show-plugin": "cse-toolkit", "list-recipes": "", "show-recipe": "simcse",
    "train": "--dry-run --data ok.txt", "encode": "starter ok.txt",
    "index": "starter ok.txt --out index",
    "search": "starter dog --data ok.txt", "data list": "", "data stats": "ok.txt",
    "data show": "ok.txt", "data fetch": "starter", "data show-pairs": "folder",
    "eval": "starter --pairs pairs.tsv",
    "bench": "--data ok.txt --model nothere", "data neighbours": "folder",
}  # fmt: skip
"""Every command, as it is typed without harm."""


def _options() -> Iterator[TerminalCase]:
    """Every option of every command with a hostile value."""
    import typer.main

    from cse_cli.main import build_app
    from cse_cli.plugins.installed import Installed

    for name, words in PLAIN.items():
        command = typer.main.get_command(build_app(name.split(), Installed()))
        for word in name.split():
            command = command.commands.get(word, command)  # type: ignore[attr-defined]
        for parameter in getattr(command, "params", ()):
            flag = next((each for each in parameter.opts if each.startswith("--")), "")
            if flag and not getattr(parameter, "is_flag", False):
                plain = [w for w in words.split() if w != flag]
                yield TerminalCase((*name.split(), *plain, flag, MARK))
        yield TerminalCase((*name.split(), *words.split(), f"--{MARK}"))
        yield TerminalCase((*name.split(), MARK))
        yield TerminalCase((*name.split(), "--help"), tty=True)
    for words in ((MARK,), ("data", MARK), ("--no-plugin", MARK, "list-plugins"),
                  ("train", "--dry-run", f"--loss.{MARK}", "1"),
                  ("train", "--dry-run", "--set", f"{MARK}={MARK}")):  # fmt: skip
        yield TerminalCase(words)
        yield TerminalCase(words, tty=True)


def _places() -> Iterator[TerminalCase]:
    """Texts, queries and lines with control characters and with markup, in what shows them."""
    for text in (MARK, MARKUP):
        line = json.dumps({"text": f"one {text} two", "document": text}) + "\n"
        files = {"t.jsonl": line * 2 + '{"text": "three", "document": "four"}\n'}
        pairs = json.dumps({"sentence1": text, "sentence2": text, "score": 1})
        pairs += '\n{"sentence1": "b", "sentence2": "c", "score": 2}\n'
        shown = (MARKUP,) if text is MARKUP else ()
        for tty in (False, True):
            for words, says in (
                (("data", "show", "t.jsonl"), shown),
                (("data", "stats", "t.jsonl"), ()),
                (("search", "starter", text, "--data", "t.jsonl"), shown),
                (("search", "starter", text, "--data", "t.jsonl", "--json"), shown),
                (("encode", "starter", "t.jsonl"), shown),
                (("encode", "starter", "--text", text), shown),
                (("eval", "starter", "--pairs", "p.jsonl"), ()),
                (("train", "--data", "t.jsonl", "--dev", "p.jsonl", "--train.max_steps", "2"), ()),
            ):
                both = {**files, "p.jsonl": pairs}
                yield TerminalCase(words, both, says=() if tty else says, tty=tty)


def _files() -> Iterator[TerminalCase]:
    for name in NAMES:
        here = {name: TEXTS}
        for words, files in (
            (("data", "show", name), here), (("data", "show", name), {}),
            (("encode", "starter", "ok.txt", "--out", f"{name}.npy"), {}),
            (("eval", "starter", "--pairs", name), {}),
            (("train", "--dry-run", "--data", name, "--save-recipe", f"{name}.toml"), here),
            (("train", "--data", "ok.txt", "--train.max_steps", "1", "--out", f"run{name}"), {}),
            (("train", "--resume", name), here), (("show-recipe", name), here),
        ):  # fmt: skip
            yield TerminalCase(words, files)
        yield TerminalCase(("search", "starter", "x", "--data", name), here, tty=True)


def _contents() -> Iterator[TerminalCase]:
    """Hostile keys and values in data, recipes, model folders and runs."""
    mark = json.dumps(MARK)
    table = {"t.jsonl": json.dumps({MARK: "one", "text": "two"}) + "\n"}
    for command, files in (
        ("data show t.jsonl", table),
        ("eval starter --pairs t.jsonl", table),
        ("train --dry-run --data t.jsonl", {"t.jsonl": json.dumps({MARK: "one"}) + "\n"}),
        ("show-recipe r.toml", {"r.toml": f"summary = {mark}\npaper = {mark}\n# {MARK}\n"}),
        ("show-recipe r.toml --toml", {"r.toml": f"[model]\nname = {mark}\n"}),
        ("train --dry-run --data ok.txt --recipe r.toml", {"r.toml": f"[train]\n{mark} = 1\n"}),
        ("train --dry-run --data ok.txt --recipe r.toml", {"r.toml": f"x = {mark}\n[[[{MARK}"}),
        ("encode m ok.txt", {"m/config.json": f'{{"model_type": {mark}}}'}),
        ("train --data ok.txt --model m", {"m/config.json": MARK, "m/tokenizer.json": MARK}),
        ("train --resume r", {"r/run.toml": f"[{mark}]", "r/metrics.jsonl": MARK}),
        ("data show-pairs r", {"r/run.toml": f"[model]\nname = {mark}", "r/result.json": mark}),
    ):
        yield TerminalCase(tuple(command.split()), files)
        yield TerminalCase(tuple(command.split()), files, tty=True)


def _environments() -> Iterator[TerminalCase]:
    """Variables of the environment, hostile and merely odd."""
    for name, values in (
        ("CSE_DISABLE_PLUGINS", ()), ("CSE_DATA_DIR", ()), ("CSE_CACHE", ()), ("LANG", ()),
        ("COLUMNS", ("0", "-1", "1e9", "1000000000", "\u0663\u0664", "3", " 80 ")),
        ("TERM", ("dumb", "unknown")), ("OMP_NUM_THREADS", ()),
    ):  # fmt: skip
        for value in (MARK, "", *values):
            yield TerminalCase(("data", "list"), env={name: value})
            if not name.startswith("CSE"):
                yield TerminalCase(("train", "--help"), env={name: value}, tty=True)

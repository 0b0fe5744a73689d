"""What reaches the terminal: every command, with hostile content through every input.

A case holds where stdout or stderr has a character that cannot be seen, on a terminal beyond
what colours and bars need. The check asks Unicode and shares nothing with what cleans.
"""

from __future__ import annotations

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
NAMES = (f"{MARK}.txt", "[bold]x.txt", ":smile:[red].txt", "\udcff\udc9b.txt", "line\nbreak.txt")
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
        """Return a short name."""
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
    """Run a case with a terminal as stdout and stderr."""
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
    """Return all cases."""
    found: list[TerminalCase] = []
    for make in (_options, _places, _files, _columns, _recipes, _models, _environments):
        found += make()
    return found


PLAIN = {
    "list-plugins": "", "show-plugin": "cse-toolkit", "list-recipes": "", "show-recipe": "simcse",
    "train": "--dry-run --data ok.txt", "encode": "starter ok.txt",
    "search": "starter dog --data ok.txt", "data list": "", "data stats": "ok.txt",
    "data show": "ok.txt", "data fetch": "starter", "data show-pairs": "folder",
    "eval": "starter --pairs pairs.tsv",
    "bench": "--data ok.txt --model nothere", "data neighbours": "folder",
}  # fmt: skip
"""Every command, as it is typed without harm."""


def _options() -> Iterator[TerminalCase]:
    """Every option of every command, and every setting, with a hostile value."""
    import typer.main

    from cse_cli.main import build_app
    from cse_cli.options.paths import option_paths
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
    for option in option_paths():
        yield TerminalCase(("train", "--dry-run", "--data", "ok.txt", f"--{option.path}", MARK))
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
    """Names of files, of those that are there and those that are not."""
    for name in NAMES:
        here, pairs = {name: TEXTS}, {name.replace(".txt", ".tsv"): PAIRS}
        table = next(iter(pairs))
        for words, files in (
            (("data", "show", name), here), (("data", "stats", name), here),
            (("data", "show", name), {}), (("encode", "starter", name), here),
            (("encode", "starter", "ok.txt", "--out", f"{name}.npy"), {}),
            (("search", "starter", "dog", "--data", name), here),
            (("eval", "starter", "--pairs", table), pairs),
            (("eval", "starter", "--pairs-out", f"{name}.tsv", "--pairs", "pairs.tsv"), {}),
            (("train", "--dry-run", "--data", name, "--save-recipe", f"{name}.toml"), here),
            (("train", "--data", name, "--train.max_steps", "1", "--dev", table, "--out", "r"),
             {**here, **pairs}),
            (("train", "--data", "ok.txt", "--train.max_steps", "1", "--out", f"run{name}"), {}),
            (("train", "--resume", name), here), (("show-recipe", name), here),
            (("encode", name, "ok.txt"), here), (("data", "list", "--data-dir", name), here),
            (("data", "show", f"sub/{name}/{name}"), {f"sub/{name}/ok.txt": ""}),
        ):  # fmt: skip
            yield TerminalCase(words, files)
        yield TerminalCase(("data", "show", "nothere.txt"), here, tty=True)
        yield TerminalCase(("search", "starter", "x", "--data", name), here, tty=True)


def _columns() -> Iterator[TerminalCase]:
    """Names of columns in headers and keys."""
    for column in (MARK, MARKUP, "[bold]", "\x1b[2J"):
        line = json.dumps({column: "one", "text": "two", f"{column}2": "three"}) + "\n"
        flat = column.translate({ord("\r"): None, 0x0B: None, 0x85: None, 0x2028: None})
        files = {"t.jsonl": line * 4, "t.tsv": f"{flat}\ttext\na\tb\nc\td\n"}
        only = {"t.jsonl": json.dumps({column: "one"}) + "\n", "t.tsv": f"{flat}\tx\na\tb\n"}
        for file in files:
            for command in ("data show", "data stats", "train --dry-run --data",
                            "eval starter --pairs"):  # fmt: skip
                yield TerminalCase((*command.split(), file), files)
                yield TerminalCase((*command.split(), file), only, tty=True)
        for key in ("positive", "text"):
            yield TerminalCase(("train", "--dry-run", "--data", "t.tsv", "--set",
                                f"data.columns.{key}={column}"), files)  # fmt: skip


def _recipes() -> Iterator[TerminalCase]:
    """Recipes with hostile keys, values and names."""
    mark = json.dumps(MARK)
    for content in (
        f"summary = {mark}\npaper = {mark}\n", f"{mark} = 1\n", f"[train]\n{mark} = 1\n",
        f"[train]\nlr = {mark}\n", f"[[loss]]\nuse = {mark}\n", f"extends = {mark}\n",
        f'[[loss]]\nuse = "infonce"\nname = {mark}\n', f"[data]\npath = [{mark}]\n",
        f"[model]\nname = {mark}\n", f"[[when]]\nfamily = {mark}\n",
        f"[data.columns]\ntext = {mark}\n",
        f'[views.{mark}]\nbranch = "online"\n', f"[train]\nselect = {mark}\n", f"# {MARK}\n",
        f"[train]\ndev = [{mark}]\n", f"[params]\n{mark} = 1\n", f"x = {mark}\n[[[{MARK}",
    ):  # fmt: skip
        files = {"r.toml": content}
        yield TerminalCase(("train", "--dry-run", "--data", "ok.txt", "--recipe", "r.toml"), files)
        yield TerminalCase(("show-recipe", "r.toml"), files, tty=True)
        yield TerminalCase(("show-recipe", "r.toml", "--toml"), files)


def _models() -> Iterator[TerminalCase]:
    """Model folders and runs whose files hold hostile texts."""
    mark = json.dumps(MARK)
    configs = (
        f'{{"model_type": {mark}}}', f'{{"model_type": "bert", {mark}: 1, "hidden_size": {mark}}}',
        mark, f'{{"architectures": [{mark}], "auto_map": {{"AutoModel": {mark}}}}}', MARK,
    )  # fmt: skip
    for config in configs:
        for extra in ({}, {"m/modules.json": f'[{{"type": {mark}, "path": {mark}}}]'},
                      {"m/cse.json": f'{{"row": {{"use": {mark}, "options": {{}}}}}}'},
                      {"m/tokenizer_config.json": f'{{"tokenizer_class": {mark}}}',
                       "m/tokenizer.json": MARK, "m/model.safetensors": MARK}):  # fmt: skip
            files = {"m/config.json": config, **extra}
            for command in ("encode m ok.txt", "train --dry-run --data ok.txt --model m",
                            "train --data ok.txt --model m --train.max_steps 1"):  # fmt: skip
                yield TerminalCase(tuple(command.split()), files)
    for run in (f"x = {mark}", f"[{mark}]", MARK, f"[model]\nname = {mark}"):
        files = {"r/run.toml": run, "r/metrics.jsonl": MARK, "r/result.json": mark}
        for command in ("train --resume r", "train --recipe r --dry-run", "encode r ok.txt",
                        "data show-pairs r", "show-recipe r"):  # fmt: skip
            yield TerminalCase(tuple(command.split()), files)


def _environments() -> Iterator[TerminalCase]:
    """Variables of the environment, hostile and merely odd."""
    for name in ("CSE_DISABLE_PLUGINS", "CSE_DATA_DIR", "CSE_CACHE", "TERM", "NO_COLOR", "COLUMNS",
                 "LINES", "TERMINAL_WIDTH", "LANG", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS",
                 "COLORTERM", "XDG_CACHE_HOME", "TZ", "OMP_NUM_THREADS", "PAGER"):  # fmt: skip
        values = [MARK, "", "1"]
        if name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
            values += ["0", "-1", "1e9", "1000000000", "\u0663\u0664", "x", "3", " 80 "]
        if name == "TERM":
            values += ["dumb", "unknown", "xterm-256color"]
        for value in values:
            for words in ("list-plugins", "data list"):
                yield TerminalCase(tuple(words.split()), env={name: value})
            if not name.startswith("CSE"):
                yield TerminalCase(("train", "--help"), env={name: value}, tty=True)

"""The table of damages to a run's own files, each with what has to come of it.

A damaged run is resumed, or its model is evaluated or encodes. It is either refused in one line
that names the file (``REFUSED``), or goes on to the same bytes as the undamaged run (``SAME``).
``EITHER`` stands where the place of the damage decides: a flipped byte of ``run.toml`` may be in a
value, in a comment, or make it no TOML at all.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from tests.reliability.outcomes import Answer, Outcome, classify
from tests.reliability.runs import base, copy, difference, resume
from tests.reliability.server import Server, the_server

Expected = Literal["refused", "same", "either"]
REFUSED, SAME, EITHER = "refused", "same", "either"
How = Callable[[Path], None]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def folder(path: Path) -> None:
    remove(path)
    path.mkdir()


def foreign(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))


def behind(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\x00\xff behind")


def link(path: Path) -> None:
    remove(path)
    path.symlink_to("nowhere")


def pipe(path: Path) -> None:
    remove(path)
    os.mkfifo(path)


ANY = (cut, flip, empty, remove, folder, foreign, behind, link, pipe)


def says(text: str) -> How:

    def how(path: Path) -> None:
        path.write_text(text, encoding="utf-8")

    how.__name__ = f"holds {text[:40]!r}"
    return how


def replaced(before: str, after: str) -> How:

    def how(path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        assert before in text, before
        path.write_text(text.replace(before, after, 1), encoding="utf-8")

    how.__name__ = f"{before.strip()!r} is {after.strip()[:40]!r}"
    return how


def moved(to: str) -> How:

    def how(path: Path) -> None:
        path.rename(path.with_name(to))

    how.__name__ = f"is called {to}"
    return how


def taken_from(name: str) -> How:

    def how(path: Path) -> None:
        other = base(name, the_server()).killed
        source = sorted(other.glob("checkpoints/*step-*"))[-1]
        if path.name == "run.toml":
            shutil.copy(other / "run.toml", path)
        else:
            remove(path)
            shutil.copytree(source, path)

    how.__name__ = f"is that of the run {name}"
    return how


@dataclass(frozen=True)
class Damage:
    """A damage, and what has to come of it.

    Attributes:
        run: ``simple`` or ``rounds``.
        file: Path in the run, of a file or a folder.
        words: What must be in the refusal; by default the file's name.
        strange: What the damage left in ``checkpoints`` and nobody may touch.
        use: ``resume`` a killed run, or use the model of a finished one.
    """

    run: str
    file: str
    how: How
    expect: Expected
    words: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    use: Literal["resume", "resume finished", "eval", "encode", "train"] = "resume"

    @property
    def label(self) -> str:
        return f"{self.use} {self.run}: {self.file} {self.how.__name__}"


def damages() -> Iterator[Damage]:
    """Yield the table; a link or a pipe in a run's folder is refused wherever it is."""
    for part in (_settings, _metrics, _checkpoints, _rounds, _finished):
        for damage in part():
            if damage.how in (link, pipe) and damage.use.startswith("resume"):
                words = (f"is a {damage.how.__name__}",)
                damage = replace(damage, expect=REFUSED, words=words)
            yield damage


def _settings() -> Iterator[Damage]:
    for how in ANY:
        refused = how in (folder, pipe, link)
        yield Damage("simple", "run.toml", how, REFUSED if refused else EITHER, ("run.toml",))
    for run in ("simple", "rounds"):
        for before, after, name in (
            ("batch_size = 4", "batch_size = 8", "train.batch_size"),
            ("batch_size = 4", 'batch_size = "many"', "train.batch_size"),
            ("lr = 0.001", "lr = -1", "train.lr"),
            ("lr = 0.001", "lr = nan", "train.lr"),
            ("seed = 42", "seed = [42]", "train.seed"),
            ("seed = 42", "", "train.seed"),
            ("max_steps = ", "max_steps = 1 # ", "train.max_steps"),
            ("save_steps = 2", "save_steps = 3", "train.save_steps"),
            ("eval_steps = 2", "eval_steps = 0", "train.eval_steps"),
            ('/encoder"', '/other"', "model.name"),
            ('/rows.csv"', '/other.csv"', "data.path"),
            ('/pairs.tsv"', '/other.tsv"', "train.dev"),
            ("threads = 1", "threads = 1000000", "train.threads"),
            ("fingerprint = ", 'fingerprint = "0" #', "run.data.fingerprint"),
            ("[run.data]", "[run.other]", "run.data"),
            ("[train]", "[trains]", "train"),
            ("[model]", "[model]\nnew = 1", "model.new"),
            ('name = "infonce"', 'name = "other"', "loss"),
            ("temperature = ", "temperature = 9 #", "temperature"),
        ):
            yield Damage(run, "run.toml", replaced(before, after), REFUSED, (name,))
    yield Damage("simple", "run.toml", taken_from("rounds"), REFUSED, ("was", "when the run began"))
    yield Damage("simple", "run.toml", replaced("[train]", "# mine\n\n[train]"), SAME)
    yield Damage("simple", "run.toml", replaced("batch_size = 4", "batch_size=0x4"), SAME)
    yield Damage("simple", "run.toml", says("[" * 5000), SAME)


def _metrics() -> Iterator[Damage]:
    line = '{"step": 1, "round": 0}\n'
    more = (
        says("[1, 2]\n"), says("null\n"), says('{"loss": 1}\n'), says('{"step": "x"}\n'),
        says('{"step": 1e999}\n'), says("[" * 100_000 + "\n"), says(line * 3),
        says(line + "\x00" * 4096), replaced('"step": 2', '"step": 200'),
        replaced('{"step": 2', "{step: 2"), replaced('"loss"', '"los'),
    )  # fmt: skip
    for run in ("simple", "rounds"):
        for how in (*ANY, *more):
            if run == "rounds" and how in more and "step" in how.__name__:
                continue
            refused = how in (folder, pipe, link)
            yield Damage(run, "metrics.jsonl", how, REFUSED if refused else SAME)


def _checkpoints() -> Iterator[Damage]:
    last = {"simple": "step-4", "rounds": "round-2-step-2"}
    for run, name in last.items():
        for file in ("state.safetensors", "state.json", "checksums.json"):
            for how in ANY:
                yield Damage(run, f"checkpoints/{name}/{file}", how, SAME)
    for file in ("run.toml", "metrics.jsonl"):
        for how in ANY:
            yield Damage("simple", f"checkpoints/step-4/{file}", how, SAME)
    for how in (says("[]"), says("{}"), says('{"state.json": 5}'), says("null")):
        yield Damage("simple", "checkpoints/step-4/checksums.json", how, SAME)
    for name in ("step-5", "step-400", "round-1-step-4", "step-" + "9" * 30, "other", "step-4-old"):
        yield Damage("simple", "checkpoints/step-4", moved(name), SAME, strange=(name,))
    yield Damage("simple", "checkpoints/step-4", remove, SAME)
    yield Damage("simple", "checkpoints/step-4", taken_from("rounds"), SAME)
    yield Damage("simple", "checkpoints", remove, REFUSED, ("no checkpoint", "start again"))
    yield Damage("rounds", "checkpoints", remove, REFUSED, ("no checkpoint", "start again"))
    for run, best in (("simple", "step-2"), ("rounds", "round-1-step-2")):
        for file in ("state.safetensors", "state.json", "checksums.json"):
            for how in ANY:
                yield Damage(run, f"checkpoints/{best}/{file}", how, REFUSED, (best,))
        yield Damage(run, f"checkpoints/{best}", remove, REFUSED, (best,))


def _rounds() -> Iterator[Damage]:
    for file in ("state.safetensors", "state.json", "checksums.json"):
        for how in ANY:
            yield Damage("rounds", f"rounds/2/{file}", how, REFUSED, ("rounds/2",))
    yield Damage("rounds", "rounds/2", remove, REFUSED, ("rounds/2",))
    yield Damage("rounds", "rounds", remove, REFUSED, ("rounds/2",))


def _finished() -> Iterator[Damage]:
    for how in (cut, empty, foreign, behind, says("[]"), says("{}"), says("null")):
        yield Damage("simple", "result.json", how, SAME, use="resume finished")
    yield Damage("simple", "result.json", remove, SAME, use="resume finished")
    yield Damage("simple", "result.json", flip, EITHER, ("finished",), use="resume finished")
    yield Damage("simple", "result.json", folder, REFUSED, ("result.json",), use="resume finished")
    files = ("model.safetensors", "config.json", "tokenizer.json", "cse.json", "checksums.json")
    for file in (*files, "tokenizer_config.json"):
        for how in (cut, flip, empty, folder, foreign, behind, *((remove,) * (file in files[:1]))):
            yield Damage("simple", f"model/{file}", how, REFUSED, ("model",), use="encode")
    for file in files:
        yield Damage("simple", f"model/{file}", flip, REFUSED, ("model",), use="eval")
        yield Damage("simple", f"model/{file}", flip, REFUSED, ("model",), use="train")
        yield Damage("simple", f"model/{file}", flip, REFUSED, ("finished", "model"),
                     use="resume finished")  # fmt: skip
    yield Damage("simple", "model/README.md", says("# mine\n"), SAME, use="encode")
    yield Damage("simple", "model/mine.txt", says("mine\n"), SAME, use="encode")
    yield Damage("simple", "model/checksums.json", remove, SAME, use="encode")
    yield Damage("simple", "checkpoints", remove, SAME, use="encode")
    yield Damage("simple", "run.toml", remove, SAME, use="encode")


def tried(damage: Damage, server: Server) -> tuple[Outcome, Answer, str]:
    """Damage a copy of a run and use it; return what came of it, and what tells it from the whole.

    A refusal must leave every file as it was.
    """
    start = base(damage.run, server)
    finished = damage.use != "resume"
    with TemporaryDirectory() as name:
        run = copy(start.whole if finished else start.killed, Path(name))
        damage.how(run / damage.file)
        before = _content(run)
        if damage.use.startswith("resume"):
            answer = resume(run, server)
        else:
            words = {
                "encode": ["encode", "run", "--text", "the old boat"],
                "eval": ["eval", "run", "--pairs", str(start.folder / "pairs.tsv")],
                "train": ["train", "--model", "run", "--data", str(start.folder / "rows.csv"),
                          "--out", "new", "--train.max_steps", "1", "--dev", "none"],
            }[damage.use]  # fmt: skip
            answer = server.call(words, Path(name))
        refused = answer.code == 2 if damage.expect == EITHER else damage.expect == REFUSED
        if not refused:
            outcome = classify(answer, Outcome.ACCEPTED)
            printed = ""
            if outcome is Outcome.ACCEPTED and damage.use.startswith("resume"):
                for name in damage.strange:
                    shutil.rmtree(run / "checkpoints" / name, ignore_errors=True)
                printed = difference(run, start.whole) or ""
            return (Outcome.SILENT if printed else outcome), answer, printed
        words = damage.words or (Path(damage.file).name,)
        outcome = classify(answer, Outcome.CLEAR, words)
        changed = outcome is Outcome.CLEAR and _content(run) != before
        return (Outcome.SILENT if changed else outcome), answer, "files changed" * changed


def _content(run: Path) -> dict[str, object]:
    """Return what a run holds but for left-overs, which a refused resume may remove too."""
    return {
        str(path.relative_to(run)): path.read_bytes() if path.is_file() else path.is_symlink()
        for path in run.rglob("*")
        if not any(part.startswith(".") for part in path.relative_to(run).parts)
    }

"""Entry point of ``cse``: the commands, and what becomes of their errors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import takewhile
from shlex import quote
from typing import Annotated, Any

import typer

import cse_cli.machine.environment  # noqa: F401
from cse_cli.machine.out_files import typed
from cse_cli.machine.refusals import check_typed, exits_as_errors, plugin_from_traceback, refusal
from cse_cli.options.flags import peek, take_no_plugin
from cse_cli.plugins.installed import OWN_COMMANDS, Installed
from cse_cli.terminal.console import OutputLost, echo, echo_err, fail, prepare_streams
from cse_cli.training import choosing
from cse_core import __version__
from cse_core.errors import CseError, CseErrors, ElsewhereError, collect_errors
from cse_core.records import Panel

PLUGIN_BUG = 1
"""Exit code where a part of a plugin raised, or broke its contract."""
INTERRUPTED = 130
"""Exit code after an interrupt: 128 and the number of the signal."""
BROKEN_PIPE = 141
"""Exit code where nobody reads the output any more."""
_DEBUG = "--debug"
_EXTRA = "Got unexpected extra argument(s) "
_HELP = ["--help", "-h"]
_NEXT = """\
cse trains sentence embeddings and uses them. Next:

  cse train --data texts.txt --out runs/mine          train on your sentences, one on each line
  cse search runs/mine --data texts.txt "a question"  find the nearest of them
  cse --help                                          all commands
"""
_EXAMPLES = {
    "train": "cse train --recipe simcse --data texts.txt --out runs/mine",
    "encode": "cse encode runs/mine texts.txt --out vectors.npy",
}
"""The last line of the help of commands."""


def main() -> None:
    """Run ``cse`` with the arguments of the process."""
    prepare_streams()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:  # which was reported, and Python would flush it again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    gc.freeze()  # the process ends: nothing that it holds is looked through for circles
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command, by what is typed behind ``cse``.

    Returns:
        The exit code: 0; 1 after a bug of a plugin's part, which was named; 2 after a user's
        mistake or a refusal of the machine, which was printed; 130 after an interrupt; 141 where
        the reader of stdout has left.
    """
    debug, installed = False, Installed()
    typed.set(tuple(arguments))
    try:
        check_typed(arguments)
        words, left_out = take_no_plugin(arguments)
        debug = _DEBUG in words[: words.index("--") if "--" in words else None]
        if debug:
            words.remove(_DEBUG)
        installed = Installed(left_out)
        with exits_as_errors():
            if words or choosing.completing():
                code = _run(words or ["--help"], installed)
            else:
                echo(_NEXT.rstrip())
                code = 0
        sys.stdout.flush()
        return code
    except ElsewhereError:  # the process that failed says why
        return 2
    except CseError as error:
        fail(_in_our_names(error))
        return 2
    except KeyboardInterrupt:
        echo_err("interrupted")
        return INTERRUPTED
    except OutputLost as lost:
        if lost.broken_pipe:
            return BROKEN_PIPE
        fail(CseError(f"cannot be written: {lost}", where="stdout"))
        return 2
    except Exception as error:
        refused = None if debug else refusal(error, arguments)
        if refused is not None:
            fail(refused)
            return 2
        line = None if debug else plugin_from_traceback(error, installed.owners(arguments))
        if line is None:
            raise
        fail(CseError(line, hint="this is a bug in the plugin; add --debug to see where"))
        return PLUGIN_BUG


def _run(words: list[str], installed: Installed) -> int:
    words, topic = choosing.take_topic(words, installed.commands.chosen(words))
    app = build_app(words, installed, topic)
    if topic:  # its help has no flags but those of the topic
        words = [*takewhile(lambda word: not word.startswith("-"), words), "--help"]
    words = choosing.with_settings(words, installed.commands.chosen(words))
    try:
        command = without_types(typer.main.get_command(app))
        code = command(args=words, prog_name="cse", standalone_mode=False, obj=installed)
    except SystemExit as end:
        if not choosing.completing():
            raise
        return int(end.code or 0)  # of Typer, which has printed what the shell offers
    except Exception as error:
        # Typer's errors of usage have no public base class, but a public way to ask for the text.
        said = getattr(error, "format_message", None)
        if said is None:
            raise
        raise _of_usage(error, said(), words, installed) from None
    return code if isinstance(code, int) else 0


def build_app(words: Sequence[str], installed: Installed, topic: str | None = None) -> typer.Typer:
    """Return the application.

    The command that the words ask for, or the group of commands, is the only one that is imported
    and described, and its choice of parts decides what ``--help`` shows; where they ask for none
    that is known, all are there to be shown. ``topic`` is that of ``choosing.take_topic``.
    """
    known = {name.split()[0] for name in (*OWN_COMMANDS, *installed.commands.usable)}
    first = next((word for word in words if not word.startswith("-")), None)
    only = first if first in known else "" if words[:1] == ["--version"] else None
    words = choosing.asked(words)
    app = typer.Typer(
        help="Train, evaluate and use contrastive sentence embeddings.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": _HELP},
    )
    app.callback()(_options)

    def add(panel: Panel, *names: str) -> None:
        for name in names:
            if only in (None, name):
                module = name.replace("-", "_")
                function = getattr(import_module(f"cse_cli.commands.{module}"), module)
                if name == "train":
                    function = choosing.with_help(function, words, installed, topic)
                example = f"Example: {_EXAMPLES[name]}" if name in _EXAMPLES else None
                app.command(name, rich_help_panel=panel, epilog=example)(function)

    add(Panel.USE, "train", "encode")
    add(Panel.PLUGINS, "list-plugins", "show-plugin", "list-recipes", "show-recipe")
    if only in (None, "data"):
        from cse_cli.commands import data

        looks = typer.Typer(help=data.app.info.help)
        looks.registered_commands = list(data.app.registered_commands)
        app.add_typer(looks, name="data", rich_help_panel=Panel.USE)
    chosen = installed.commands.chosen(words)
    if chosen is not None:
        from cse_core.loading import load_factory

        function = load_factory(chosen.factory, where=f"cse {chosen.name}")
        if chosen.takes_choice:
            function = choosing.with_help(function, words, installed, topic)
        installed.commands.add_chosen(app, chosen, function)
    else:
        installed.commands.add_lines(app, only)
    app.registered_commands.sort(key=lambda command: _place(command.name, command.rich_help_panel))
    return app


def _place(name: str | None, panel: Any) -> tuple[int, int]:
    """Return the sort key of a command in help: its panel, then the most used commands first."""
    panels, names = [*Panel], ("train", "eval", "encode", "index", "search")
    return (
        panels.index(panel) if panel in panels else len(panels),
        names.index(name) if name in names else len(names),
    )


def without_types(command: Any) -> Any:
    """Return a command whose help, with its subcommands', shows no type of switches, arguments."""
    for inner in getattr(command, "commands", {}).values():
        without_types(inner)
    help_ = command.get_help_option(typer.Context(command, help_option_names=_HELP))
    if command.params:  # of train, whose last options have a heading
        help_.rich_help_panel = getattr(command.params[-1], "rich_help_panel", None)
    for parameter in (*command.params, help_):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None
        parameter.process_value = partial(_process_value, parameter, parameter.process_value)
    return command


def _process_value(parameter: Any, process: Callable[..., Any], context: Any, value: Any) -> Any:
    """Return the value of a parameter; one that is not given needs no pydantic in typer."""
    if value is not None or parameter.required:
        return process(context, value)
    value = () if parameter.multiple or parameter.nargs == -1 else None
    return parameter.callback(context, parameter, value) if parameter.callback else value


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"cse-toolkit {__version__}")
        raise typer.Exit()


def _options(
    no_plugin: Annotated[
        list[str] | None,
        typer.Option(
            "--no-plugin",
            metavar="NAME",
            help="Run without this plugin, 'all' without any. May be repeated.",
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a bug in a plugin.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Train, evaluate and use contrastive sentence embeddings."""


def _of_usage(error: Exception, said: str, words: Sequence[str], installed: Installed) -> CseError:
    """Return an error of usage as one line that says what to type."""
    told_path = getattr(getattr(error, "ctx", None), "command_path", None)
    path = told_path or ("cse" if words[0].startswith("-") else f"cse {words[0]}")
    flag = getattr(error, "option_name", None)
    unknown = isinstance(flag, str) and type(error).__name__ == "NoSuchOption"
    if unknown and choosing.takes_choice(words, installed.commands.chosen(words)):
        parameters = getattr(getattr(getattr(error, "ctx", None), "command", None), "params", ())
        known = {flag for option in parameters for flag in (*option.opts, *option.secondary_opts)}
        return _unknown_flags(str(flag), known, path, words, installed)
    text = " ".join(said.split()).rstrip(".")
    if text.startswith("No such command"):
        typed = [word for word in words if not word.startswith("-")]
        missing = installed.commands.missing(" ".join(typed[: len(path.split())]))
        if missing:
            return CseError(f"no such command {typed[len(path.split()) - 1]!r}", hint=missing)
    if text.startswith(_EXTRA) and path == "cse train":
        extra = text.removeprefix(_EXTRA).strip("()").split()[0]
        hint = f"training texts follow --data: --data {quote(extra)}"
        return CseError("unexpected argument", where=path, value=extra, hint=hint)
    text = text.replace("No such option: ", "unknown option ", 1)
    return CseError(text[:1].lower() + text[1:], hint=f"see {path} --help")


def _unknown_flags(
    first: str, known: set[str], path: str, words: Sequence[str], installed: Installed
) -> CseError:
    """Return an error for each unknown flag, ``first`` among them, and for what else is wrong."""
    typed = takewhile(lambda word: word != "--", words)
    names = [word.partition("=")[0] for word in typed if word.startswith("--")]
    unknown = [name for name in names if name not in {*known, "--help"}]
    errors: list[CseError] = []
    for flag in dict.fromkeys(unknown if first in unknown else [first, *unknown]):
        ours, close = _of_other_trainers(flag), _close_flag(flag, known)
        hint = f"cse calls it {ours}" if ours else f"see {path} --help"
        if close and not ours:
            hint = f"did you mean {close}? {hint}"
        errors.append(CseError(f"unknown option {flag}", hint=hint))
    choice = peek(words)
    with collect_errors(errors):  # data that an unknown flag may have named is not looked at
        from cse_cli.training.resolving import composition_of

        composition_of(choice, installed, look=bool(choice.data))
    return errors[0] if len(errors) == 1 else CseErrors(errors)


def _of_other_trainers(flag: str) -> str | None:
    """Translate a flag of another trainer to the one of cse."""
    import tomllib
    from pathlib import Path

    table = Path(__file__).parent / "options" / "flags_elsewhere.toml"
    ours: str | None = tomllib.loads(table.read_text(encoding="utf-8")).get(
        flag.lstrip("-").replace("-", "_")
    )
    return ours


def _in_our_names(error: CseError) -> CseError:
    """Return an error in which another trainer's name of an option is answered with ours."""
    if isinstance(error, CseErrors):
        return CseErrors([_in_our_names(entry) for entry in error.errors])
    _, dot, name = (error.where or "").rpartition(".")
    unknown = dot and error.what == "unknown option"
    close = (error.hint or "").startswith("did you mean")
    ours = _of_other_trainers(name) if unknown and not close else None
    if ours is None:
        return error
    hint = f"cse calls it {ours}"
    return CseError(error.what, where=error.where, value=error.value, hint=hint)


def _close_flag(flag: str, known: set[str]) -> str | None:
    """Return the flag closest to an unknown one: of the command, or a core option by its name."""
    from difflib import get_close_matches

    from cse_cli.options.paths import option_paths

    if near := get_close_matches(flag, known, n=1, cutoff=0.75):
        return near[0]
    paths = {option.path.partition(".")[2]: option.path for option in option_paths()}
    close = get_close_matches(flag.lstrip("-").replace("-", "_"), paths, n=1, cutoff=0.75)
    return f"--{paths[close[0]]}" if close else None

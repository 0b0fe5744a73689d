"""What a command of a plugin is made with: everything else of ``cse_cli`` may change.

A mistake of the user is a ``cse_core.errors.CseError``: it is printed as one line, and the exit
code is 2. Any other exception is a bug and keeps its traceback. Results go to stdout, messages and
progress to stderr.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cse_cli.cards.scores import keep_scores
from cse_cli.machine.json_files import check_shape, read_json
from cse_cli.machine.out_files import check_out_file, check_out_folder, check_text, out_file
from cse_cli.machine.processor import processor
from cse_cli.models.few_texts import PROBE, FewTextsEncoder, few_texts_encoder
from cse_cli.models.loading import Loading, ModelArgument, check_model, model_flags
from cse_cli.models.processes import shared
from cse_cli.options.completion import complete_data, complete_model, complete_suite
from cse_cli.options.descriptions import describe
from cse_cli.options.flags import Choice
from cse_cli.plugins.folders import DATA_VARIABLE, data_folder, known_set
from cse_cli.plugins.installed import Installed, installed
from cse_cli.terminal.console import (
    echo,
    echo_err,
    fail,
    plain_table,
    say_json,
    say_json_line,
    say_table,
    warn,
)
from cse_cli.terminal.markdown import code, markdown_table, plain
from cse_cli.terminal.progress import libraries_quiet
from cse_cli.texts.given import ColumnsOption, named_columns, read_rows, stdin_lines
from cse_cli.training.choosing import SHOWN, choice_flags
from cse_cli.training.pages import pages_advice
from cse_cli.training.resolving import absolute_path, composition_of, with_absolute_paths
from cse_cli.training.stored_run import EVALUATION_SHAPE, RESULT_SHAPE
from cse_cli.training.train_checks import check_can_load, check_read
from cse_core.errors import visible
from cse_core.loading import is_hub_reachable
from cse_core.registry.names import source_of
from cse_core.registry.plugin_info import PluginInfo
from cse_core.registry.registry import Registered, Registry
from cse_engine.compose.compose import resolve
from cse_engine.compose.models import Models
from cse_engine.compose.reading import read_toml
from cse_engine.compose.settings import CORE_OPTIONS
from cse_engine.compose.values import format_value
from cse_engine.run.fingerprints import fingerprints, folder_sums

if TYPE_CHECKING:
    from cse_core.reporter import Reporter
    from cse_defaults.texts import Corpus

__all__ = [
    "CORE_OPTIONS", "DATA_VARIABLE", "EVALUATION_SHAPE", "PROBE", "RESULT_SHAPE", "SHOWN", "Choice",
    "ColumnsOption", "FewTextsEncoder", "Installed", "Loading", "ModelArgument", "Models",
    "PluginInfo", "Registered", "Registry", "absolute_path", "check_can_load", "check_model",
    "check_out_file", "check_out_folder", "check_read", "check_shape", "check_text", "choice_flags",
    "code", "complete_data", "complete_model", "complete_suite", "composition_of", "data_folder",
    "describe", "echo", "echo_err", "fail", "few_texts_encoder", "fingerprints", "folder_sums",
    "format_value", "installed", "is_hub_reachable", "keep_scores", "known_set", "libraries_quiet",
    "load_texts", "markdown_table", "model_flags", "named_columns", "out_file", "pages_advice",
    "plain", "plain_table", "processor", "progress", "read_json", "read_rows", "read_toml",
    "resolve", "say_json", "say_json_line", "say_table", "shared", "source_of", "stdin_lines",
    "visible", "warn", "with_absolute_paths",
]  # fmt: skip


def load_texts(path: str, plugins: Installed | None = None, *, limit: int | None = None) -> Corpus:
    """Return the rows of a file, an installed data set or one of the hub.

    Args:
        path: As ``--data`` takes it.
        plugins: The installed plugins; without them no data set of theirs is known.
        limit: Rows to read at most.

    Raises:
        CseError: If it cannot be read.
    """
    from cse_core.texts import DataOptions
    from cse_defaults.texts import load_corpus

    options = DataOptions(path=(path,), limit=limit)
    return load_corpus(options) if plugins is None else plugins.read(options).corpus()


@contextmanager
def progress(
    plugins: Installed | None = None, *, json: bool = False, quiet: bool = False
) -> Iterator[Reporter]:
    """Give a reporter that shows messages and a bar, or nothing with ``json`` or ``quiet``.

    With ``plugins``, a warning of those that failed stands above the first message, and libraries
    draw no bars of their own from here on.
    """
    from cse_cli.terminal.progress import reporter_for, silence

    if plugins is not None:
        silence()
    opening = (lambda: None) if plugins is None else plugins.warn_of_failed
    with reporter_for(quiet=quiet or json, opening=opening) as reporter:
        yield reporter

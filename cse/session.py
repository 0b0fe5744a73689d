"""A training run in steps: composed, prepared, stepped, looked at, kept as a run that goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack

from cse.plans import Chosen, File, Plan, compose
from cse_cli.models.processes import check_launch
from cse_cli.plugins.installed import Installed
from cse_cli.terminal.progress import libraries_quiet
from cse_cli.texts.table_cache import token_table
from cse_cli.training.resolving import with_absolute_paths
from cse_cli.training.stored_run import StoredRun
from cse_cli.training.train_checks import check_out
from cse_core.errors import CseError
from cse_core.reporter import Reporter
from cse_engine.compose.composition import Composition
from cse_engine.compose.models import Models
from cse_engine.run.checkpoint import Checkpoint, begin
from cse_engine.run.export import inference_encoder, save_model
from cse_engine.run.loop import TrainingLoop
from cse_engine.run.prepare import Prepared, prepare
from cse_engine.run.run import run_file
from cse_engine.run.run_folder import RunFolder
from cse_engine.run.trainer import Trainer
from cse_engine.runtime.device import resolve_precision
from cse_engine.runtime.distributed import rank_and_size
from cse_engine.runtime.sharing import all_gather_objects
from cse_engine.step.step import BeforeBackward, Engine, StepResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor
    from torch.optim import AdamW

    from cse_core.parts import Part
    from cse_core.protocols import Encoder, Tokenizer
    from cse_core.suites import Role


_UNSCORED: dict[str, Any] = {"dev": (), "select": None, "report": ()}
"""What ``train.*`` has where nothing is scored."""


class Session:
    """A training run in steps, which writes, scores and logs nothing by itself.

    Its batches are those of the first round, or of that in which a stored run stands. ``with``
    prepares and closes it. Started by torchrun, every process makes each call.

    Args:
        made_of: A recipe as in :func:`cse.plan`, a plan, a composition, or what
            :func:`cse.open_run` returns, which goes on from its last checkpoint.
        plugins: The installed plugins of a composition; by default they are loaded.
        reporter: Hears of the progress; by default nobody does.
        models: Keeps what was read of models; sessions that share one read a folder once.
        check_parts: Whether parts are checked thoroughly in every step, not in the first alone.
        chosen: As in :func:`cse.plan`, beside a recipe.

    Attributes:
        composition: The parts, their options and the settings of the core.
        device: Where it trains; this and the others are there once it is prepared.
        corpus: All rows of the data, numbered as parts see them.
        trained: The parameters that the optimiser moves, by name.
        round: Number of the round, 0 in a run without rounds.
        rows: The rows of the round: the corpus, or what a miner brought.
        losses: Names of the losses of the round.

    Raises:
        CseError: What is wrong with it.
    """

    def __init__(
        self,
        made_of: File | Plan | Composition | StoredRun | None = None,
        *,
        plugins: Installed | None = None,
        reporter: Reporter | None = None,
        models: dict[Any, Any] | None = None,
        check_parts: bool = False,
        **chosen: Unpack[Chosen],
    ) -> None:
        check_launch()
        self._run = made_of if isinstance(made_of, StoredRun) else None
        if isinstance(made_of, Composition):
            self.composition, self._plugins = made_of, plugins or Installed()
        else:
            self.composition, _, self._plugins = compose(made_of, chosen, "cse.Session")
        self._reporter, self._models = reporter or Reporter(), models
        self._check_parts = check_parts
        self._written: set[Path] = set()
        self._closed = False

    def __enter__(self) -> Session:
        return self.prepare()

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> Session:
        """Read the model and the data and make the parts, where that was not done.

        Raises:
            CseError: If one of them is wrong, or the miners want no round.
        """
        _ = self._loop
        return self

    @cached_property
    def _prepared(self) -> Prepared:
        if self._closed:
            raise CseError("is closed", where="cse.Session", hint="make another")
        composition, plugins = self.composition, self._plugins
        absolute = with_absolute_paths(composition, plugins.registry)
        alone = replace(absolute, train=absolute.train.model_copy(update=_UNSCORED))
        with libraries_quiet():
            prepared = prepare(
                alone,
                plugins.registry,
                reporter=self._reporter,
                read_texts=plugins.read,
                make_table=token_table,
                load=self._load,
            )
        prepared.assembly.calls.always = self._check_parts
        return prepared

    def _load(self, load: Callable[..., Any], name: str, *given: Any, **how: Any) -> Any:
        """Read a model, or copy one that another session read in this way."""
        if self._models is None:
            return load(name, *given, **how)
        folder = Models(self._plugins.registry).weights(name)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        stamps = [(path, path.stat().st_mtime_ns, path.stat().st_size) for path in files]
        key = (load.__name__, name, *stamps, *given, *sorted(how.items()))
        if key not in self._models:
            self._models[key] = load(name, *given, **how)
        return deepcopy(self._models[key])

    @cached_property
    def _loop(self) -> TrainingLoop:
        prepared, run = self._prepared, self._run
        self.device, self.corpus = prepared.assembly.device, prepared.corpus
        self._temporary = TemporaryDirectory(prefix="cse-session-")  # what miners bring
        shared = all_gather_objects(partial(str, self._temporary.name), str)[1][0]
        folder, checkpoint = Path(shared), None
        if run is not None:
            run.check_rows(self.corpus)
            if run.checkpoints[-1:] not in ([], [(0, 0)]):  # that of its beginning is empty
                number, step = run.checkpoints[-1]
                checkpoint = Checkpoint.read(RunFolder(run.path).checkpoint(number, step))
                folder = run.path if number else folder  # which has the round
        trainer = self._trainer = Trainer(prepared, RunFolder(folder))
        if checkpoint is not None:
            trainer.restore(checkpoint)
        current = next(trainer.rounds.run(checkpoint is not None))
        loop = trainer.begin(current, checkpoint)
        loop.engine.builder.tokenise(self._reporter)
        self.trained, self.rows, self.round = loop.optimizer.named, loop.rows, current.number
        objectives = loop.engine.objectives
        active = (*objectives.losses, *objectives.token_losses)
        self.losses = tuple(loss.name for loss in active)
        return loop

    @property
    def parts(self) -> Mapping[str, Part]:
        """The parts by their paths, such as ``loss.infonce``, as made before it is prepared."""
        return self._prepared.assembly.parts

    @property
    def done(self) -> int:
        """Steps of the round that were made; the next one has this number, which may be set."""
        return self._loop.done

    @done.setter
    def done(self, number: int) -> None:
        self._loop.done = number

    @property
    def total(self) -> int:
        """Steps of the round, over which schedules run."""
        return self._loop.total

    def batch(self, number: int) -> Tensor:
        """Return ``[B]`` which rows of the round its step of this number takes, from 0."""
        return self._loop.batches.at(number)

    def step(self, rows: Tensor | None = None, *, count_negatives: bool = False) -> StepResult:
        """Make an optimiser step.

        Args:
            rows: ``[B]`` rows of the round; by default the next batch.
            count_negatives: Whether ``parts`` of the result counts the negatives of each loss.
        """
        return self._loop.step(rows, count_negatives=count_negatives)

    def watch(self, look: Callable[[Any, str, tuple[Any, ...], Any], None] | None) -> None:
        """Let ``look(part, method, given, returned)`` see each call of a part in a step.

        A loss is called with a batch, its positives, its negatives and the context: once for each
        direction, and before that in a trial where an augmenter asks for the gradient of inputs.
        """
        self._loop.assembly.calls.look = look

    def before_update(self, look: Callable[[], None] | None) -> None:
        """Call a function in each step when its gradients are there and no weight has moved."""
        self._loop.before_update = look

    def before_backward(self, look: BeforeBackward | None) -> None:
        """Let ``look(value, vectors, again, value_of)`` see each step before its backward pass.

        ``value`` is the sum of the losses, ``vectors[view][level]`` what it is made of, with
        gradient, and ``again()`` these vectors by the weights as they are when it is called, with
        the same draws and dropout masks. ``value_of(vectors)`` is the sum of the losses of other
        vectors, such as those of some rows of the batch, found by their ``owner``; None where these
        have no loss. In a step without a loss it is not called.
        """
        self._loop.engine.before_backward = look

    @property
    def adamw(self) -> AdamW:
        """The optimiser; ``peak`` of its groups is their learning rate at the schedule's top."""
        return self._loop.optimizer.adamw

    def rate(self, step: int) -> float:
        """Return the learning rate at a step of the round, as a share of its peak."""
        return self._loop.optimizer.rate(self._loop.scheduled + step)

    def with_precision(self, name: str) -> Session:
        """Return a session over the same weights and moments in ``fp32`` or ``bf16``.

        It goes on from here with the same batches and draws, and counts its own steps.

        Raises:
            CseError: If the precision is unknown.
        """
        loop = copy(self._loop)
        precision = resolve_precision(name, self.device)
        loop.engine = Engine(loop.assembly, loop.rows, precision, loop.current.losses, loop.options)
        other = copy(self)
        other._loop, other._trainer = loop, copy(self._trainer)
        other._trainer.prepared = replace(self._prepared, precision=precision)
        return other

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return ``[N, D]`` vectors of texts, as the saved model would encode them."""
        vectors: NDArray[np.float32] = self.prepare()._trainer.encode(texts).numpy()
        return vectors

    def embed(self, texts: Sequence[str], role: Role | None = None) -> Tensor:
        """Return ``[N, D]`` vectors of texts as :meth:`encode`, in fp32 and with gradient.

        With a role, they have the prompt of queries or documents where the saved model has some.
        """
        encoder = inference_encoder(self.prepare()._loop.assembly, role)
        return encoder.embed_table(encoder.table(texts, encoder.max_length, False), self.device)

    def encoder(self, branch: str = "online") -> Encoder:
        """Return the encoder of a branch."""
        return self._prepared.assembly.encoders[branch].encoder

    def tokenizer(self, branch: str = "online") -> Tokenizer:
        """Return the tokenizer of a branch."""
        return self._prepared.assembly.encoders[branch].tokenizer

    def checkpoint(self, path: File) -> None:
        """Write a run that stands here: :func:`cse.resume` and ``cse train --resume`` go on.

        Another into the same folder lies beside it. Scores of a stored run are not taken along. Of
        several processes the first writes.

        Raises:
            CseError: If the folder holds other things, or a weight is not finite.
        """
        trainer, folder = self.prepare()._trainer, RunFolder(Path(path))
        scored = with_absolute_paths(self.composition, self._plugins.registry).train
        kept = {name: getattr(scored, name) for name in _UNSCORED}
        trainer.settings = run_file(self._prepared, **kept).encode()
        made, new = trainer.checkpoint(self._loop), folder.path not in self._written
        if rank_and_size()[0]:
            return
        if new:
            check_out(folder.path)
        with folder.held("path"):
            if new:
                begin(folder, trainer.settings)
                if self.round:
                    copytree(trainer.folder.round(self.round), folder.round(self.round))
                self._written.add(folder.path)
            made.write(folder.checkpoint(self.round, self.done))

    def save(self, path: File) -> None:
        """Write the model, which transformers and sentence-transformers load as it is."""
        with libraries_quiet():
            save_model(self.prepare()._loop.assembly, Path(path), chosen=f"step {self.done}")

    def close(self) -> None:
        """Forget the model, and remove what miners brought; it makes no step any more."""
        self._closed = True
        if "_temporary" in vars(self):
            self._temporary.cleanup()
        for name in ("_loop", "_trainer", "_prepared", "trained"):
            vars(self).pop(name, None)

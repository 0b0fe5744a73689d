"""The reporters that this distribution brings."""

from cse_core.hookspecs import hookimpl
from cse_core.records import ReporterSpec


@hookimpl
def cse_reporters() -> list[ReporterSpec]:
    """Return the reporters."""
    return [
        ReporterSpec(
            name="csv",
            summary="metrics.csv next to metrics.jsonl, one column per key",
            factory="cse_reporters.files:CsvReporter",
            options="cse_reporters.options:CsvOptions",
        ),
        ReporterSpec(
            name="tensorboard",
            summary="the numbers of metrics.jsonl as TensorBoard events",
            factory="cse_reporters.files:TensorboardReporter",
            options="cse_reporters.options:TensorboardOptions",
        ),
        ReporterSpec(
            name="wandb",
            summary="the numbers and settings of a run to Weights & Biases, or offline",
            factory="cse_reporters.trackers:WandbReporter",
            options="cse_reporters.options:WandbOptions",
        ),
        ReporterSpec(
            name="mlflow",
            summary="the numbers and settings of a run to MLflow",
            factory="cse_reporters.trackers:MlflowReporter",
            options="cse_reporters.options:MlflowOptions",
        ),
        ReporterSpec(
            name="trackio",
            summary="the numbers and settings of a run to Trackio, local or on the hub",
            factory="cse_reporters.trackers:TrackioReporter",
            options="cse_reporters.options:TrackioOptions",
        ),
    ]

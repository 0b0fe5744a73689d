"""What stands for the roles of a study, ``@model`` or ``@sentences``: names on the command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cse_cli.training.resolving import absolute_path
from cse_core.errors import CseError, did_you_mean
from cse_core.registry.registry import Registry
from cse_study.definition.reading import RUN as RUN

STARTER = "starter"
"""Stands for every role that nothing was named for."""


@dataclass(frozen=True)
class Inputs:
    """Models and texts that were named for roles; an empty role is every one without its own.

    Attributes:
        models: By the role behind ``@model:``.
        data: Files by role, ``sentences``, ``documents``.
        dev: Dev sets; without any, the starter's pairs.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dev: Sequence[str] = ()

    @staticmethod
    def of(models: Sequence[str], data: Sequence[str], dev: Sequence[str]) -> Inputs:
        """Return what flags name, each ``NAME`` or ``ROLE=NAME``.

        Raises:
            CseError: If a model is named twice for a role.
        """
        chosen: dict[str, str] = {}
        for role, name in map(_split, models):
            if role in chosen:
                what = "two models for one role" if role else "two models without a role"
                hint = "write --model ROLE=NAME for a role such as @model:ROLE"
                raise CseError(what, where="--model", value=name, hint=hint)
            chosen[role] = name
        files: dict[str, list[str]] = {}
        for role, name in map(_split, data):
            files.setdefault(role, []).append(name)
        return Inputs(chosen, files, tuple(dev))

    def whole(self, registry: Registry) -> Inputs:
        """Return them with files and folders by their whole paths, whose contents are in keys."""
        return replace(
            self,
            models={role: absolute_path(name, registry) for role, name in self.models.items()},
            data={role: [absolute_path(name, registry) for name in names]
                  for role, names in self.data.items()},
        )  # fmt: skip

    def of_role(self, text: str) -> list[str]:
        """Return what stands for a role, ``@sentences``."""
        role = text.removeprefix("@")
        if role == "dev":
            return list(self.dev) or [STARTER]
        head, _, which = role.partition(":")
        if head == "model":
            return [self.models.get(which, self.models.get("", STARTER))]
        return list(self.data.get(role, self.data.get("", (STARTER,))))

    def has(self, text: str, plain: Collection[str]) -> bool:
        """Tell whether something was named for a role, the starter where nothing was named at all.

        Args:
            text: The role, ``@titles``.
            plain: Roles for which texts that were named without a role stand too.
        """
        role = text.removeprefix("@")
        if role == "dev" or role.partition(":")[0] == "model":
            return True
        return not self.data or role in self.data or ("" in self.data and text in plain)

    def check(self, roles: Sequence[str]) -> None:
        """Refuse names for roles that the study does not have.

        Raises:
            CseError: If there is one.
        """
        models = [role.removeprefix("@model:") for role in roles if role.startswith("@model:")]
        data = [role.removeprefix("@") for role in roles if not role.startswith("@model")]
        for flag, named, known in (("--model", self.models, models), ("--data", self.data, data)):
            for role in named:
                if role and role not in known:
                    hint = did_you_mean(role, known) if known else "leave the role out"
                    raise CseError("the study has no such role", where=flag, value=role, hint=hint)


def _split(text: str) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    return (role.strip().removeprefix("@"), name) if equals else ("", text)


def is_role(value: object) -> bool:
    """Tell whether a value of a setting is a role, which something stands for."""
    return (
        isinstance(value, str) and re.fullmatch(r"@(?!none$)\w+|@model:[\w-]+", value) is not None
    )


def filled(value: Any, inputs: Inputs) -> Any:
    """Return a value of a setting with names in the places of roles."""
    if is_role(value):
        names = inputs.of_role(value)
        return names if len(names) > 1 else names[0]
    if isinstance(value, list):
        found: list[Any] = []
        for each in value:
            name = filled(each, inputs)
            found += name if isinstance(name, list) and is_role(each) else [name]
        return found
    if isinstance(value, Mapping):
        return {key: filled(each, inputs) for key, each in value.items()}
    return value

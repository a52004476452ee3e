# SPDX-License-Identifier: MIT
"""The OpenCL C of one stage, wherever it comes from, with all that its build and launches need."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.kernel.launch_form import LaunchForm
from controllers.kgt.kernel import Tables, WorkSizes
from controllers.kgt.parameter import Parameter, Role
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.program.program import Math


@dataclass(frozen=True)
class StageKernel:
    """OpenCL C of one stage, and how it is called.

    parameters: known beforehand, or () to ask the compiler, which must agree with `roles`.
    scalars: values of parameters other than the tiles' and the box's.
    title, file: what a user calls it, and the user's file, for messages; "" where there is none.
    origin: where the text comes from, for people.
    math: strict arithmetic is built without options that the environment adds.
    form: how a user's kernel is launched; None of others.
    """

    name: str
    source: str
    options: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    work_sizes: WorkSizes = work_sizes
    scalars: Mapping[str, float] = field(default_factory=dict)
    tables: Tables | None = None
    title: str = ""
    file: str = ""
    origin: str = ""
    math: Math = "strict"
    form: LaunchForm | None = None

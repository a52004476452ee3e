# SPDX-License-Identifier: MIT
"""What a task that has failed raises."""
from __future__ import annotations

from controllers.process.error import ControllersError


class TaskError(ControllersError, RuntimeError):
    """A task has raised, or one whose cells or result it was to read; `__cause__` says what.

    task, variant, device: of the task that has raised first, "" where none was chosen yet.
    """

    __module__ = "controllers"

    def __init__(self, text: str, task: str, variant: str = "", device: str = "") -> None:
        super().__init__(text)
        self.task, self.variant, self.device = task, variant, device

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.task, self.variant, self.device)

    @classmethod
    def of(cls, error: BaseException, task: str, variant: str, device: str) -> TaskError:
        """`error` as that of a task."""
        told = f"{type(error).__name__}: {error}".rstrip(": ")
        found = cls(f"task {task!r} ({variant}) failed on {device}: {told}", task, variant, device)
        found.__cause__ = error
        return found

    @classmethod
    def after(cls, first: TaskError, task: str) -> TaskError:
        """That of a task that was not done, as it reads what the one of `first` was to give."""
        found = cls(
            f"task {task!r} was not done, as it reads what another one was to write: {first}",
            first.task, first.variant, first.device,
        )  # fmt: skip
        found.__cause__ = first.__cause__ or first
        return found

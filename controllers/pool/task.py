# SPDX-License-Identifier: MIT
"""A task: one piece of work, in one or several variants, and the roles of what it is given.

A variant is a function for cores of the host, or a kernel for devices: OpenCL C (`ct.Kernel`), or a
function of items (`ct.each`).  All variants of a task do the same; which one does it is the
pool's affair.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

from controllers.controller.access import TileRole
from controllers.device.selection import Selector
from controllers.kernel.variant import Kernel
from controllers.kgt.parameter import ROLE_WORDS, TILE_ROLES
from controllers.language.each import RESULT, Each
from controllers.pool.variant import HOST, Body, Devices, Variant, checked_devices, told
from hitmap.argument import function as function_argument
from hitmap.argument import instance, one_of, whole, wrong

Size: TypeAlias = Callable[..., float]


class Task:
    """What pools do; made by `ct.task`, or of names alone, with variants that follow.

    parameters: their names, in order.  roles: what is done to those that are arrays, "reading",
    "writing" or "updating"; others are read.  size: how much an execution has to do, of its
    arguments, in whatever unit; by default the bytes of the arrays that it touches.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[str] = (),
        *,
        roles: Mapping[str, str] | None = None,
        size: Size | None = None,
    ) -> None:
        self.name = instance(name, str, "the name of a task", "write it in quotes")
        self.parameters = tuple(parameters)
        self.size = size
        self.variants: tuple[Variant, ...] = ()
        self.signature: inspect.Signature | None = None
        self._counts = range(0)     # of arguments that suit it, if all are given by place
        self.roles: dict[str, TileRole] = {}
        if roles is not None and not isinstance(roles, Mapping):
            raise wrong(f"task {name!r}: roles", "a dict", roles, 'write {"x": "writing"}')
        for parameter, word in (roles or {}).items():
            role = ROLE_WORDS.get(word, word)
            if role not in TILE_ROLES:
                one_of(word, ROLE_WORDS, f"task {name!r}: the role of {parameter!r}")
            self.roles[parameter] = role  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<task {self.name!r}: {', '.join(one.name for one in self.variants) or 'nothing'}>"

    def variant(
        self,
        body: Body | None = None,
        *,
        on: str | None = None,
        name: str = "",
        least: int = 1,
        most: int | None = None,
        devices: Devices = None,
        over: str = "",
        group: Sequence[int] | None = None,
    ) -> Any:
        """One way more to do it: `@task.variant(...)` over a function, or a kernel as argument.

        Parameters have the names of the task's.  What a function of items returns becomes that
        parameter of the same name, or a single value the one that is written.  A kernel is launched
        over the cells of the parameter `over`, by default the first one that is written.
        A function of items is for devices; with on="host" cores do it in NumPy, one item after
        another, which is slow.
        devices: so many, or (least, most), of those that `on` selects are a function's own while
        it runs.  Other keywords are those of `Variant`; cores are those of functions.
        """
        if body is None:
            return lambda given: self._add(given, on, name, (least, most), devices, over, group)
        return self._add(body, on, name, (least, most), devices, over, group)

    def _add(
        self, body: Body, on: str | None, name: str, cores: tuple[int, int | None],
        devices: Devices, over: str, group: Sequence[int] | None,
    ) -> Body:  # fmt: skip
        is_kernel = isinstance(body, (Kernel, Each))
        if not is_kernel:
            function_argument(body, f"a variant of the task {self.name!r}")
        own = checked_devices(self.name, devices)
        if is_kernel and devices is not None:
            raise ValueError(
                f"task {self.name!r}: a kernel uses one whole device, got devices={devices!r}; "
                f"leave them out, or give a function that uses several"
            )
        by_host = (not is_kernel and devices is None) or isinstance(body, Each)
        by_devices = is_kernel or devices is not None
        if on is not None and not (by_host if on == HOST else by_devices):
            raise ValueError(
                f"task {self.name!r}: functions are for {HOST!r}, kernels and functions of items "
                f'for devices such as "gpu", as are functions that have some by devices=, got '
                f"on={on!r} for {body!r}; leave on= out"
            )
        if is_kernel and cores not in ((1, None), (1, 1)):
            raise ValueError(
                f"task {self.name!r}: a kernel uses one whole device, got least={cores[0]}, "
                f"most={cores[1]}; leave them out, and divide a CPU by devices='cpu/1,1'"
            )
        least = whole(cores[0], "least", 1)
        most = least if cores[1] is None else whole(cores[1], "most", least)
        if on:
            Selector.parse(on)
        where = on or "" if is_kernel or devices is not None else HOST
        usual = {True: "opencl", False: "each"}[isinstance(body, Kernel)] if is_kernel else HOST
        self.variants += (Variant(
            body, self._free_name(name or usual), where, least, most,
            self._known(over), None if group is None else tuple(group),
            frozenset() if is_kernel else told(body, devices=devices is not None), own,
        ),)  # fmt: skip
        self._take_signature(body)
        return body

    def _free_name(self, name: str) -> str:
        taken = {one.name for one in self.variants}
        number = 2
        free = name
        while free in taken:
            free, number = f"{name} {number}", number + 1
        return free

    def _known(self, over: str) -> str:
        if over and over not in self.parameters:
            raise ValueError(
                f"task {self.name!r} has no parameter {over!r} to be launched over; it has "
                f"{', '.join(self.parameters)}"
            )
        return over

    def _take_signature(self, body: Body) -> None:
        """Parameters are those of the first function, unless they were given."""
        if self.signature is None and not isinstance(body, (Kernel, Each)):
            try:
                found = inspect.signature(body)
            except (ValueError, TypeError):     # of NumPy's functions in C
                return
            by_pool = self.variants[-1].tells       # not by who submits it
            of_users = [one for one in found.parameters.values() if one.name not in by_pool]
            self.signature = found.replace(parameters=of_users)
            own = [
                one.name for one in self.signature.parameters.values()
                if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
            ]  # fmt: skip
            self.parameters = self.parameters or tuple(own)
            if len(own) == len(of_users):
                least = sum(one.default is one.empty for one in of_users)
                self._counts = range(least, len(own) + 1)

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """The arguments with the names of their parameters; TypeError where they do not fit."""
        if self.signature is not None and (kwargs or len(args) not in self._counts):
            try:
                self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"task {self.name!r}: {error}") from None
        elif self.parameters and len(args) > len(self.parameters):
            raise TypeError(
                f"task {self.name!r} takes {len(self.parameters)} arguments "
                f"({', '.join(self.parameters)}), got {len(args)}"
            )
        names = [*self.parameters[: len(args)], *[""] * (len(args) - len(self.parameters))]
        return [*zip(names, args), *kwargs.items()]


@overload
def task(body: Body) -> Task: ...
@overload
def task(
    *, name: str = ..., roles: Mapping[str, str] | None = ..., size: Size | None = ...,
    least: int = ..., most: int | None = ..., devices: Devices = ..., on: str | None = ...,
) -> Callable[[Body], Task]: ...  # fmt: skip


def task(
    body: Body | None = None,
    *,
    name: str = "",
    roles: Mapping[str, str] | None = None,
    size: Size | None = None,
    least: int = 1,
    most: int | None = None,
    devices: Devices = None,
    on: str | None = None,
) -> Task | Callable[[Body], Task]:
    """A function, or one of items, as a task: `@ct.task`, or `@ct.task(roles=...)`.

    name: by default the function's; times are kept by it.  roles, size: see `Task`; least, most,
    devices, on: see `Task.variant`.  Of a function of items the results are written, without being
    said.

    >>> @task(roles={"y": "updating"})
    ... def scale(y, factor):
    ...     y *= factor
    >>> scale, scale.parameters
    (<task 'scale': host>, ('y', 'factor'))
    """

    def made(given: Body) -> Task:
        if isinstance(given, Kernel):
            raise TypeError(
                f"the kernel {given.name!r} does not say what it is called with; write "
                f"ct.Task({given.name!r}, parameters, roles=...).variant(kernel) with their names"
            )
        if isinstance(given, Each):
            uses = (*given.parameters.uses, *given.parameters.numbers)
            found = Task(
                name or given.__name__, (RESULT, *uses),
                roles={RESULT: "writing", **(roles or {})}, size=size,
            )  # fmt: skip
        else:
            found = Task(name or _name_of(given), roles=roles, size=size)
            found.__doc__ = getattr(given, "__doc__", None)
        found.variant(given, on=on, least=least, most=most, devices=devices)
        return found

    return made if body is None else made(body)


def _name_of(function: Callable[..., Any]) -> str:
    """The function's, with its place where that says nothing."""
    function_argument(function, "a task")
    name: str = getattr(function, "__qualname__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if "<lambda>" in name and code is not None:
        return f"lambda of {code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno}"
    return name

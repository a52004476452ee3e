# SPDX-License-Identifier: MIT
"""Kernels: OpenCL C becomes something that a controller can launch."""
from __future__ import annotations

import logging
import random
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TypeAlias, cast

import pyopencl as cl

from controllers.device.child import kernel_cache_folder
from controllers.device.device import ROUNDED_DIVIDE, Device
from controllers.device.event import Event
from controllers.device.remedy import DOCTOR
from controllers.kernel.build_cache import cache_for
from controllers.kernel.build_log import with_lines, without_counts
from controllers.kernel.crash import labelled, tell_of_crashes
from controllers.kernel.declarations import NO_HEADER, WITH_THE_HEADER, declared
from controllers.kernel.variant import Kernel
from controllers.kgt.parameter import Parameter, Role, with_roles
from controllers.kgt.text.fixed import accessors
from controllers.process.errand import errand
from controllers.process.error import ControllersError
from controllers.process.foreign_options import (
    foreign_options,
    refuse_foreign_options,
    without_foreign_options,
)
from controllers.process.invoker import keep_invokers_in_memory
from controllers.program.program import Math

# PyOpenCL's function, with events of any kind
enqueue_kernel: Callable[..., Event] = cl.enqueue_nd_range_kernel
_logger = logging.getLogger(__name__)

_LOG = re.compile(r"Build on [^\n]*:\n\n(.*?)\s*\(options: [^\n]*\)", re.DOTALL)
# PoCL's cache now and then fails builds when several processes make the same entry (pocl#1480), or
# gives a program without kernels; its log is then empty of errors, and the next attempt finds the
# entry.  The last attempts make an entry of their own: the one that is there may be damaged.
ATTEMPTS = 5
ATTEMPTS_AT_ENTRY = 3
# Number of axes and macros -> the accessors, as OpenCL C.
Accessors: TypeAlias = Callable[[int, Mapping[str, str]], str]
# NVIDIA's compiler keeps no names and types of parameters without it.
ARGUMENT_INFO = "-cl-kernel-arg-info"


_NO_REASON = (
    f"The compiler gives no reason; an entry of the driver's cache may be damaged: {DOCTOR} looks "
    f"into it"
)


class BuildError(ControllersError, RuntimeError):
    """OpenCL C that does not compile: says kernel, device, options and the compiler's log."""

    __module__ = "controllers"


@dataclass(frozen=True)
class Built:
    """A compiled kernel, its parameters in order."""

    name: str
    program: cl.Program
    parameters: tuple[Parameter, ...]
    text: str = ""      # all of it, where it is a user's whole kernel

    @property
    def group(self) -> tuple[int, ...]:
        """The work-group that it is compiled for, in OpenCL's order; zeros where that is none."""
        (device,) = cast("list[cl.Device]", self.program.get_info(cl.program_info.DEVICES))
        info = cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE
        found = compiled(self.program, self.name).get_work_group_info(info, device)
        return tuple(map(int, cast("list[int]", found)))

    @property
    def label(self) -> str:
        """What is being done while it is enqueued, for the list of calls that a crash prints."""
        (device,) = cast("list[cl.Device]", self.program.get_info(cl.program_info.DEVICES))
        return f"kernel {self.name!r} is launched on {where(device)}"

    @property
    def enqueue(self) -> Callable[..., Event]:
        """PyOpenCL's function that enqueues a kernel; a crash in it tells which."""
        return labelled(self.label, enqueue_kernel)


def build(
    context: cl.Context,
    name: str,
    source: str,
    options: Sequence[str] = (),
    file: str = "",
    math: Math = "strict",
    hint: str = "",
) -> cl.Program:
    """Compile `source` for the one device of `context`.

    `name` is the kernel's in messages, `file` where a user's source comes from, and `hint` what
    else is said where it does not compile.  The driver's own cache is used where it has one, else
    `controllers.kernel.build_cache`; neither of PyOpenCL's, which keep pickles
    (`controllers.process.invoker`).  Options that the environment adds are heeded where `math` is
    "fast" only (`controllers.process.foreign_options`).
    """
    device = context.devices[0]
    keep_invokers_in_memory()
    tell_of_crashes()
    if math == "strict":
        refuse_foreign_options(device.platform.name)
    for attempt in range(1, ATTEMPTS + 1):
        text = source
        if attempt > ATTEMPTS_AT_ENTRY:     # comments would not count
            text = f"{source}\ntypedef int attempt_{attempt};\n"
        program, log = _attempt(context, name, text, options, math)
        if program is not None:
            return program
        if "error" in log.lower() or attempt == ATTEMPTS:
            break
        time.sleep(random.Random().uniform(0, 0.1) * attempt)   # leaves the user's seed alone
    of_file = f" ({file})" if file else ""
    hints = [hint, "" if "error" in log.lower() else _NO_REASON]
    raise BuildError(
        f"kernel {name!r}{of_file} does not compile on {device.name.strip()!r} "
        f"with options {' '.join(options) or 'none'}:\n"
        + "\n".join([with_lines(log, source), *filter(None, hints)])
    )


def _attempt(
    context: cl.Context, name: str, text: str, options: Sequence[str], math: Math
) -> tuple[cl.Program | None, str]:
    """The program; or None, and what the compiler says."""
    made = labelled(f"kernel {name!r} is built for {where(context.devices[0])}", _made)
    try:
        with errand(f"the build of {name}"), warnings.catch_warnings(), without_counts(text):
            # drivers are talkative; errors are exceptions
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program = made(context, name, text, options, math)
    except cl.RuntimeError as error:
        return None, _log(str(error))
    if not program.get_info(cl.program_info.NUM_KERNELS):
        return None, "the program has no kernels"
    return program, ""


def where(device: cl.Device | Device) -> str:
    """A device, and the driver's cache that its kernels come from, for notes of crashes."""
    platform = device.platform if isinstance(device, Device) else device.platform.name
    is_pocl = "portable computing language" in platform.lower()
    cache = f", with PoCL's cache {kernel_cache_folder()}" if is_pocl else ""
    return f"{device.name.strip()}{cache}; {DOCTOR} looks into caches"


def build_user_kernel(
    context: cl.Context,
    device: Device,
    kernel: Kernel,
    n_axes: int,
    macros: Mapping[str, str] | None = None,
    front: Accessors | None = None,
    options: Sequence[str] = (),
) -> Built:
    """The variant of a whole kernel for `device`, with the accessors of `n_axes` axes.

    `front` makes these, in place of `accessors`; `options` are what the build is given, too.

    A kernel that updates a tile in place (inout) computes each cell once; one that only reads
    some tiles and writes others may compute a cell twice.
    """
    variant = kernel.variant(device)
    source = variant.source
    name = source.kernel_name(kernel.name)
    if not source.kernels:
        raise ValueError(f"kernel {kernel.name!r} is a body; write a __kernel to launch it")
    macros, options = {**(macros or {}), **variant.form.definitions}, [ARGUMENT_INFO, *options]
    if device.correctly_rounded_divide:     # the same bits on all such devices
        options.append(ROUNDED_DIVIDE)
    while True:
        text = source.complete((front or accessors)(n_axes, macros), "")
        program = build(context, kernel.name, text, options, source.file)
        built = Built(name, program, parameters(compiled(program, name), kernel.roles), text)
        if "ONCE" in macros or all(p.role != "inout" for p in built.parameters):
            return built
        macros["ONCE"] = ""


def compiled(program: cl.Program, name: str) -> cl.Kernel:
    """The kernel `name` of a program; BuildError where the driver does not know it."""
    try:
        return cl.Kernel(program, name)
    except cl.LogicError as error:
        raise BuildError(
            f"the driver finds no kernel {name!r} in its program ({error}); built-in functions of "
            f"OpenCL C, such as mix or step, cannot give a kernel its name; an entry of the "
            f"driver's cache may be damaged too, which {DOCTOR} finds"
        ) from None


def parameters(kernel: cl.Kernel, roles: Mapping[str, Role] | None = None) -> tuple[Parameter, ...]:
    """What the compiler says of a kernel built with ARGUMENT_INFO; `roles` are declared ones."""
    found = [_parameter(kernel, number) for number in range(kernel.num_args)]
    return with_roles(found, roles or {}, kernel.function_name)


def _parameter(kernel: cl.Kernel, number: int) -> Parameter:
    info = cl.kernel_arg_info
    name, type_name = (
        str(kernel.get_arg_info(number, what)).strip(" \0") for what in (info.NAME, info.TYPE_NAME)
    )
    name = name.removeprefix("_cl_")    # PoCL's for names of built-in functions, such as step
    space = kernel.get_arg_info(number, info.ADDRESS_QUALIFIER)
    qualifier = cast("int", kernel.get_arg_info(number, info.TYPE_QUALIFIER))
    spaces = cl.kernel_arg_address_qualifier
    role: Role = "scalar"
    if space == spaces.LOCAL:
        role = "local"
    elif space == spaces.CONSTANT:
        role = "in"
    elif space == spaces.GLOBAL:
        role = "in" if qualifier & cl.kernel_arg_type_qualifier.CONST else "inout"
    return Parameter(name, type_name, role)


def _made(
    context: cl.Context, name: str, source: str, options: Sequence[str], math: Math
) -> cl.Program:
    """The program from our cache, or compiled."""
    device, start = context.devices[0], time.perf_counter()
    cache = None if ARGUMENT_INFO in options else cache_for(device)
    foreign = foreign_options() if math == "fast" else {}
    depends_on = [*options, *(f"{variable}={text}" for variable, text in foreign.items())]
    binary = cache.load(device, source, depends_on) if cache else None
    with nullcontext() if math == "fast" else without_foreign_options():
        program = binary and _from_binary(context, binary, options)
        how = "found in the cache" if program else "built"
        program = program or _compiled(context, source, options)
    if cache and how == "built":
        (binary,) = cast("list[bytes]", program.get_info(cl.program_info.BINARIES))
        cache.store(device, source, depends_on, binary)
    seconds = time.perf_counter() - start
    _logger.info("kernel %s %s for %s in %.2f s", name, how, device.name.strip(), seconds)
    return program


def _from_binary(
    context: cl.Context, binary: bytes, options: Sequence[str]
) -> cl.Program | None:
    try:
        program: cl.Program = cl.Program(context, [context.devices[0]], [binary])
        return _built(program, options)
    except cl.Error:    # not what this driver wrote: a miss
        return None


def _compiled(context: cl.Context, source: str, options: Sequence[str]) -> cl.Program:
    by_us = WITH_THE_HEADER in context.devices[0].platform.version and ARGUMENT_INFO not in options
    text = declared(source) if by_us else None
    if text is not None:
        with suppress(cl.RuntimeError):     # what it says is said of the text itself
            return _built(cl.Program(context, text), [*options, NO_HEADER])
    return _built(cl.Program(context, source), options)


def _built(program: cl.Program, options: Sequence[str]) -> cl.Program:
    built: cl.Program = program.build(
        options=list(options), cache_dir=False  # type: ignore[arg-type]
    )
    return built


def _log(message: str) -> str:
    """The compiler's log within PyOpenCL's message; all of that where it looks otherwise."""
    found = _LOG.search(message)
    return found[1] if found else message

# SPDX-License-Identifier: MIT
"""Kernels by name: what `kernel=` may say."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, Union

from controllers.kernel.launch_form import FormKeywords
from controllers.kernel.variant import ANY, Kernel
from controllers.language.source import SourceLike
from controllers.program.identifier import short
from controllers.program.program import Math
from hitmap.agreement import agree, raise_together
from hitmap.argument import instance
from hitmap.comm import Communicator

if TYPE_CHECKING:
    from typing_extensions import Unpack

SPECIALISED: Literal["specialised"] = "specialised"
GENERIC: Literal["generic"] = "generic"
KernelChoice: TypeAlias = Union[Literal["specialised", "generic"], Kernel]

# The one place with a state of its own: names that programs have registered in this process.
_registered: dict[str, Kernel] = {}


def register_stencil(
    name: str,
    source: SourceLike,
    *,
    device: str = ANY,
    scalars: Mapping[str, float] | None = None,
    beside: bool = False,
    **form: Unpack[FormKeywords],
) -> Kernel:
    """Make a kernel of your own known as `kernel=name`; returns it.

    source: OpenCL C as text, or the path of a .cl file: a body or a whole kernel
        (docs/kernels.md).
    device: which devices this variant is for: "" (any), a kind, a vendor, a pattern of names.
        Register further variants under the same name; the most specific one is used.
    scalars: values for scalar parameters of its own.
    beside: keep those that were registered for the same devices and as many steps per launch, as
        candidates for tuning; otherwise this one replaces them.
    form: how it is launched, by work_group, cells_per_item, steps_per_launch, local, like or
        space: see `Kernel.of`.

    On several ranks every rank registers the same.
    """
    instance(name, str, "the name of a kernel", "write it in quotes")
    if not name.strip() or name in (SPECIALISED, GENERIC) or name.endswith(".cl"):
        raise ValueError(
            f"a kernel cannot be called {short(name)}; choose a name other than {SPECIALISED}, "
            f"{GENERIC} and those of files"
        )
    if name in _registered:
        kernel = _registered[name].with_variant(source, device, beside=beside, **form)
        kernel = kernel.with_scalars(scalars or {})
    else:
        kernel = Kernel.of(name, source, device=device, scalars=scalars, **form)
    _registered[name] = kernel
    return kernel


def find_kernel(kernel: str | Kernel | None) -> KernelChoice:
    """What `kernel=` means: None is the specialised one, a name one that was registered.

    >>> find_kernel(None), find_kernel("generic")
    ('specialised', 'generic')
    """
    if kernel is None or isinstance(kernel, Kernel):
        return kernel or SPECIALISED
    if kernel == SPECIALISED:
        return SPECIALISED
    if kernel == GENERIC:
        return GENERIC
    if kernel not in _registered:
        known = ", ".join([SPECIALISED, GENERIC, *_registered])
        raise ValueError(
            f"there is no kernel {short(kernel)}; there are {known}; "
            f"make one known with register_stencil"
        )
    return _registered[kernel]


def check_math(math: Math, choice: KernelChoice, checked: bool = False) -> None:
    """ValueError where another arithmetic than the strict one has no meaning.

    checked: whether every result is compared with the reference.
    """
    if math == "strict":
        return
    if choice != SPECIALISED:
        name = choice.name if isinstance(choice, Kernel) else choice
        raise ValueError(
            f"math={math!r} is for the kernels that are generated, and the kernel {name!r} is not; "
            f"leave one of the two out"
        )
    if checked:
        raise ValueError(
            f"the checked mode compares bits with the strict reference, which math={math!r} does "
            f"not have; leave one of the two out"
        )


def agreed_kernel(comm: Communicator, kernel: str | Kernel | None) -> KernelChoice:
    """What `kernel=` means, the same on all ranks.  Collective; ValueError on all ranks."""
    choice: KernelChoice = SPECIALISED
    problem = None
    try:
        choice = find_kernel(kernel)
    except ValueError as error:
        problem = str(error)
    raise_together(comm, problem)
    agree(comm, "kernel", choice)
    return choice

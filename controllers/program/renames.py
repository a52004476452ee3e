# SPDX-License-Identifier: MIT
"""Renames, which end a step: each field has one version then, and no version has two names."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from controllers.program.field import Field


def check_renames(
    program: str, renames: Mapping[str, str], fields: Sequence[Field], written: Collection[str]
) -> None:
    """ValueError where a field would have two versions, or a version two names.

    `renames` are between `fields` of the program of that name, whose stages write `written`.
    """
    known = {field.name: field for field in fields}
    for new, old in renames.items():
        what = f"program {program!r} renames {old!r} to {new!r},"
        if new in written:
            raise ValueError(
                f"{what} which a stage writes too, "
                f"so that {new!r} has two versions; write another field, or rename none to it"
            )
        if known[new].dtype != known[old].dtype:
            raise ValueError(
                f"{what} which holds "
                f"{known[new].dtype} and not {known[old].dtype}; give both the same dtype"
            )
        if known[new].half != known[old].half:
            raise ValueError(f"{what} which lies elsewhere; give both the same location")
        if known[new].boundary != known[old].boundary:
            raise ValueError(
                f"{what} whose boundaries differ "
                f"({known[old].boundary}; {known[new].boundary}), while cells "
                f"outside go with their field; give both the same"
            )
        names = [name for name in renames if renames[name] == old]
        if old not in written and old not in renames:
            names.append(old)
        if len(names) > 1:
            raise ValueError(
                f"{what} so that one version has "
                f"the names {', '.join(names)}; let a stage copy it, or drop one of the names"
            )

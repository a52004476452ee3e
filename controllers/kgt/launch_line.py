# SPDX-License-Identifier: MIT
"""The line of a written kernel that says how it is launched, for programs to read.

    // launch: {"strategy": "rows", "lanes": 16, "rows": 4, "planes": 1, ...}

A kernel with one cell per work-item needs none.
"""
from __future__ import annotations

import json
import re
from collections.abc import Mapping

from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.table import config_from, plain
from hitmap.argument import short

HEAD = "// launch: "
MOST = 1 << 20      # of any number in the line
_LINE = re.compile(rf"^{re.escape(HEAD)}(.*)$", re.MULTILINE)


def launch_line(config: Config) -> str:
    r"""The line, with its end; "" where there is nothing to say.

    >>> from controllers.kgt.strategies.marching import MarchingConfig
    >>> launch_line(MarchingConfig())    # doctest: +ELLIPSIS
    '// launch: {"strategy": "marching", "lanes": 4, "steps": 2, ..."one_index": false}\n'
    """
    return f"{HEAD}{json.dumps(plain(config))}\n" if config.parameters() else ""


def launched_like(text: str, file: str) -> Config | None:
    """What the line in the text of a kernel says; None where it has none.

    ValueError, with `file` and the number of the line, where it says nothing that kgt could have
    written.

    >>> launched_like('// launch: {"strategy": "rows", "lanes": 8}', "my.cl").lanes
    8
    """
    found = [*_LINE.finditer(text)]
    if not found:
        return None
    where = f"{file}:{text.count(chr(10), 0, found[-1].start()) + 1}"
    if len(found) > 1:
        raise ValueError(f"{where}: a second line {HEAD.strip()!r}; leave one of them out")
    try:
        return config_from(_checked(json.loads(found[0][1])))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{where}: {short(found[0][1])} says of no kernel how it is launched "
            f"({type(error).__name__}: {short(str(error))}); restore what kgt has written, or "
            f"leave the line out and declare work_group and cells_per_item"
        ) from None


def _checked(data: object) -> Mapping[str, object]:
    """The values, of which all but the strategy are small whole numbers."""
    if not isinstance(data, dict):
        raise TypeError("it is no object of JSON")
    for name, value in data.items():
        for number in value if isinstance(value, list) else [value]:
            if name != "strategy" and not (isinstance(number, int) and 0 <= number <= MOST):
                raise ValueError(f"{name} is {short(value)}")
    return data

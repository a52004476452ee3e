# SPDX-License-Identifier: MIT
"""Random expressions for tests of generated kernels."""
from __future__ import annotations

import random

from controllers.program.expression import SYMBOLS, Constant, Expression, Operation, Read
from controllers.program.program import INTEGERS


def random_tree(rng: random.Random, reads: list[Read], dtype: str) -> Expression:
    """A graph over all `reads`, with constants; or a sum divided by a factor, as stencils are."""
    whole = dtype in INTEGERS

    def constant() -> Constant:
        return Constant(rng.choice([1, 2, 3, -4, 7]) if whole else rng.choice([0.5, 3, -1 / 3]))

    nodes: list[Expression] = []
    for read in reads:
        nodes.append(constant() * read if rng.random() < 0.6 else read)
    if rng.random() < 0.6:
        tree = nodes[0]
        for node in nodes[1:]:
            tree = tree + node
        return tree / rng.choice([4, 3, -7, 1])
    made: list[Operation] = []
    while len(nodes) > 1:
        at = rng.randrange(len(nodes) - 1)
        made.append(Operation(rng.choice(SYMBOLS), nodes[at], nodes[at + 1]))
        nodes[at : at + 2] = [made[-1]]
    for shared in rng.sample(made, min(2, len(made))):
        nodes[0] = Operation(rng.choice(SYMBOLS), nodes[0], shared)
    return Operation("-", nodes[0], constant())

# SPDX-License-Identifier: MIT
"""Random expressions for tests of generated kernels."""
from __future__ import annotations

import random

from controllers.program.expression import SYMBOLS, Application, Constant, Expression, Read
from controllers.program.functions import QUOTIENT, WIDENED
from controllers.program.program import INTEGERS


def random_tree(rng: random.Random, reads: list[Read], dtype: str) -> Expression:
    """A graph over all `reads`, with constants; or a sum divided by a factor, as stencils are.

    Of integers with the arithmetic of those, in int64 with truncated quotients, or with NumPy's.
    """
    whole = dtype in INTEGERS
    divide = QUOTIENT if whole else "/"
    widened = whole and rng.random() < 0.6
    symbols = [*SYMBOLS[:3], *([] if whole and not widened else [divide])]

    def constant() -> Constant:
        some = [1, 2, 3, 7] if dtype == "uint8" and not widened else [1, 2, 3, -4, 7]
        return Constant(rng.choice(some) if whole else rng.choice([0.5, 3, -1 / 3]))

    nodes: list[Expression] = []
    for field_read in reads:
        read = Application(WIDENED, field_read) if widened else field_read
        nodes.append(constant() * read if rng.random() < 0.6 else read)
    if rng.random() < 0.6 and (widened or not whole):
        tree = nodes[0]
        for node in nodes[1:]:
            tree = tree + node
        return _stored(Application(divide, tree, Constant(rng.choice([4, 3, -7, 1]))), dtype)
    made: list[Application] = []
    while len(nodes) > 1:
        at = rng.randrange(len(nodes) - 1)
        made.append(Application(rng.choice(symbols), nodes[at], nodes[at + 1]))
        nodes[at : at + 2] = [made[-1]]
    for shared in rng.sample(made, min(2, len(made))):
        nodes[0] = Application(rng.choice(symbols), nodes[0], shared)
    return _stored(Application("-", nodes[0], constant()), dtype)


def _stored(tree: Expression, dtype: str) -> Expression:
    return Application(dtype, tree) if dtype == "uint8" else tree

# SPDX-License-Identifier: MIT
"""A finite space of configurations with named parameters.

Configurations are frozen dataclasses, their parameters the fields, or what they say themselves;
each member of a tuple is a parameter of its own.  Not every combination of values is a
configuration, and not every configuration has all parameters.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

C = TypeVar("C")    # of configurations
NONE = -1           # the value of a parameter that a configuration has not


class Space(Generic[C]):
    """Some configurations, each once; the first one is the default, where searches start."""

    def __init__(self, configurations: Iterable[C]) -> None:
        self.configurations = tuple(dict.fromkeys(configurations))
        if not self.configurations:
            raise ValueError("a space holds at least one configuration, its default")
        described = [_parameters(config) for config in self.configurations]
        ranks = {
            name: _ranks(each.get(name, NONE) for each in described)
            for name in dict.fromkeys(name for each in described for name in each)
        }
        self.parameters = tuple(name for name in ranks if len(ranks[name]) > 1)
        self._at = {
            config: tuple(ranks[name][values.get(name, NONE)] for name in self.parameters)
            for config, values in zip(self.configurations, described)
        }
        self._here = {at: config for config, at in self._at.items()}
        self._last = [len(ranks[name]) - 1 for name in self.parameters]

    @property
    def default(self) -> C:
        """What is taken when nothing is known."""
        return self.configurations[0]

    def __len__(self) -> int:
        return len(self.configurations)

    def neighbour(self, config: C, *notches: tuple[int, int]) -> C | None:
        """The nearest configuration whose parameters differ as `notches` say, or None.

        notches: numbers of parameters, and the direction (-1 or 1) in which each is moved, all by
        equally many values, as few as possible.
        """
        at = [*self._at[config]]
        while True:
            for number, direction in notches:
                at[number] += direction
                if not 0 <= at[number] <= self._last[number]:
                    return None
            found = self._here.get(tuple(at))
            if found is not None:
                return found

    def line(self, config: C, number: int) -> list[C]:
        """The configurations that differ from `config` in one parameter alone, and it, in order."""
        at = [*self._at[config]]
        places = ((*at[:number], n, *at[number + 1 :]) for n in range(self._last[number] + 1))
        return [self._here[place] for place in places if place in self._here]


def _ranks(values: Iterable[int | str]) -> dict[int | str, int]:
    """The place of each value among all of them; texts come last."""
    ordered = sorted({*values}, key=lambda value: (isinstance(value, str), value))
    return {value: place for place, value in enumerate(ordered)}


def _parameters(config: object) -> dict[str, int | str]:
    """The values of all parameters by name: `group` (32, 4) is `group[0]` 32 and `group[1]` 4."""
    found: dict[str, int | str] = {}
    said = getattr(config, "parameters", None)
    for name, value in (vars(config) if said is None else said()).items():
        if isinstance(value, tuple):
            found |= {f"{name}[{n}]": member for n, member in enumerate(value)}
        else:
            found[name] = value
    return found

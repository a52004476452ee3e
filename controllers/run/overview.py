# SPDX-License-Identifier: MIT
"""What there is to see of a computation: program, places, plan, and its fields by their names."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from controllers.array.arrays import Arrays
from controllers.engine import Engine
from controllers.fields.field_access import FieldAccess
from controllers.fields.one_field import OneField
from controllers.placement.placement import Placement
from controllers.plan import Plan
from controllers.program.program import Program
from controllers.run.assembly import Assembly
from controllers.run.results import Results
from controllers.settings.request import Request
from hitmap.layout import Layout
from hitmap.shape import Shape


class Overview(FieldAccess):
    """All fields, and each by its name: `run["u"]`, and `run.u` where the name is free."""

    _assembly: Assembly
    _request: Request
    _expressions: Arrays

    @property
    @abstractmethod
    def results(self) -> Results:
        """What the last step has found."""

    def __getitem__(self, field: str) -> OneField:
        """One field by its name, much like an array, to read, set, save or load."""
        return self._named(field)

    def __getattr__(self, name: str) -> Any:
        """A field or, by its name, a result of the last step; for names that mean nothing else."""
        arrays = self.__dict__.get("_expressions")
        if arrays is not None and name in arrays.fields:
            return OneField(self, name)
        if not name.startswith("_") and name in self.program.results:
            return self.results[name]
        if name.startswith("_") or name not in self._names:
            known = "" if name.startswith("_") else f"; the fields are {', '.join(self.fields)}"
            raise AttributeError(f"a computation has no {name!r}{known}")
        return self[name]

    def __setitem__(self, name: str, value: object) -> None:
        """Of a field itself alone, after `run["u"] += 1`."""
        if not (name in self._names and isinstance(value, OneField) and value.is_of(self, name)):
            raise TypeError(
                f"{name!r} is a field, whose cells are set by run[{name!r}][...] = values"
            )

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, OneField) and value.is_of(self, name):
            return      # after run.u += 1
        if "_assembly" in self.__dict__ and name in self._names and not hasattr(type(self), name):
            raise AttributeError(
                f"{name!r} is a field, whose cells are set by run.{name}[...] = values or "
                f"run.{name}.set(values)"
            )
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.fields, *self.program.results]

    def _named(self, field: str | None) -> OneField:
        if field is None:
            field = self._one("gather")
        if field not in self._names:
            raise KeyError(f"there is no field {field!r}; there are {', '.join(self.fields)}")
        return OneField(self, field)

    def __repr__(self) -> str:
        cells, plan = " x ".join(map(str, self.domain.extent)), self.plan
        kinds = ", ".join(f"{f} {self.program.dtypes[f]}" for f in self.fields)
        devices = ", ".join(dict.fromkeys(where.device for where in plan.locations))
        return (
            f"<Computation of {self.program.name}: {kinds}, {cells} cells, "
            f"places: {plan.layout.n_places} on {devices}, steps done: {self._engine.n_steps}, "
            f"{self.state}>"
        )

    @property
    def program(self) -> Program:
        """What is computed."""
        return self._assembly.terms.program

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields; those that methods keep between their stages have some, too."""
        return tuple(name for name in self._names if name not in self._alike)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.program.fields)

    @property
    def _alike(self) -> Mapping[str, str]:
        return self._request.alike

    @property
    def domain(self) -> Shape:
        """All cells of the field."""
        return self._assembly.terms.domain

    @property
    def step(self) -> int:
        """The steps done since all fields were set."""
        return self._engine.n_steps

    @property
    def time(self) -> float:
        """The time after these steps, each of `dt`; 0 where there is no `dt`."""
        return self._engine.numbers.time(self._engine.n_steps)

    @property
    def layout(self) -> Layout:
        """Which cells each place owns."""
        return self._assembly.layout

    @property
    def placement(self) -> Placement:
        """Where the places are."""
        return self._assembly.placement

    @property
    def plan(self) -> Plan:
        """What happens in one step, of `plan.steps_per_launch` time steps."""
        return self._engine.plan

    @property
    def _engine(self) -> Engine:
        arrays = self.__dict__.get("_expressions")
        if arrays is not None:      # whoever asks looks at tiles
            arrays.pending.finish()
        return self._assembly.engine

    @property
    def _arrays(self) -> Arrays:
        return self._expressions

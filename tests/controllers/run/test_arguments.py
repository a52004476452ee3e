# SPDX-License-Identifier: MIT
"""Wrong arguments of the public interface: each says what was expected, what came, the remedy."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from mpi_jobs import run_ranks

from controllers import (
    Computation,
    Controller,
    Kernel,
    Stencil,
    dry_run,
    reading,
    reference_run,
    register_stencil,
    stencil_computation,
    updating,
    writing,
)
from hitmap.shape import Shape

MEAN = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
P = MEAN.program("float32")
STAR = Stencil.of("star", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)
P2 = STAR.program("float32")
FILL = Kernel.of(
    "fill", "__kernel void fill(__global float *u, TILE(u), BOX, int n) { CELL; HERE(u) = n; }",
    scalars={"n": 1},
)  # fmt: skip
NAN, INF = float("nan"), float("inf")


def made(program: Any = P, sizes: Any = 9, **options: Any) -> None:
    with Computation(program, sizes, **{"devices": "reference", **options}) as computation:
        computation.run(1)


def stencil(
    sizes: Any = 9, shape: Any = ((-1, 1),), pattern: Any = (1, 0, 1), factor: Any = 2,
    iterations: Any = 1, **options: Any,
) -> None:  # fmt: skip
    stencil_computation(
        sizes, shape, pattern, factor, iterations, **{"devices": "reference", **options}
    )


class Bench:
    """A controller, a tile and a computation to be misused."""

    def __init__(self) -> None:
        self.controller = Controller("cpu")
        self.u = self.controller.tile((8, 8))
        self.counts = self.controller.tile((4,), "int32")
        self.inner = self.controller.tile((4,), "float32", "internal")
        self.run = Computation(P2, (12, 12), devices="reference")

    def launch(self, over: Any = None, kernel: Any = FILL, **arguments: Any) -> None:
        over = self.u if over is None else over
        self.controller.launch(kernel, over, **{"u": self.u, **arguments})


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    opened = Bench()
    yield opened
    opened.controller.close()
    opened.run.close()


Row = tuple[str, type[Exception], Callable[[Bench], object]]
TE, VE = TypeError, ValueError
COMPUTATIONS: Sequence[Row] = [
    ("Program or a Stencil .*got str 'heat'", TE, lambda b: made("heat")),
    ("Program.*got None", TE, lambda b: made(None)),
    ("sizes: .*got float 9.0; write 9", TE, lambda b: made(sizes=9.0)),
    ("sizes: .*got float 30.0; write 30", TE, lambda b: made(P2, (30.0, 40))),
    ("sizes: .*got float 9.0", TE, lambda b: made(P2, np.array([9.0, 9.0]))),
    ("sizes: .*got str '9'.*brackets", TE, lambda b: made(sizes="9")),
    ("sizes: .*got None", TE, lambda b: made(sizes=None)),
    ("sizes: .*got bool True", TE, lambda b: made(sizes=True)),
    ("sizes: .*got bool False", TE, lambda b: made(P2, (9, False))),
    (r"at least one cell, got \(-3, 9\)", VE, lambda b: made(P2, (-3, 9))),
    ("sizes: .*got Shape", TE, lambda b: made(P2, Shape((0, 0), (9, 9)))),
    ("sizes: .*got dict", TE, lambda b: made(P2, {9: 1, 8: 2})),
    ("sizes: .*got list .*np.asarray", TE, lambda b: made(P2, [[9], [9]])),
    ("sizes: .*got float inf", TE, lambda b: made(sizes=(INF,))),
    ("less than 2.63 bytes.*smaller", VE, lambda b: made(P2, (2**40, 2**40))),
    ("a boundary is one of fixed, periodic, .*'open'", VE, lambda b: made(boundary="open")),
    ("'fixed:zero'", VE, lambda b: made(boundary="fixed:zero")),
    ("no axis 'y'", VE, lambda b: made(boundary={"y": "fixed"})),
    (r"pair \(lower, upper\)", VE, lambda b: made(boundary=[["fixed"] * 3])),
    ("ring has no ends", VE, lambda b: made(boundary={0: ("fixed", "periodic")})),
    ("boundary: .*got int 3", TE, lambda b: made(boundary=3)),
    ("boundary: .*got bool True.*fixed or periodic", TE, lambda b: made(boundary=[True])),
    ("devices: .*got int 3.*gpu", TE, lambda b: made(devices=3)),
    ("devices: .*got int 3.*gpu", TE, lambda b: made(devices=["cpu", 3])),
    ("no device fits 'bogus'.*choose", VE, lambda b: made(devices="bogus")),
    ("weights: .*got str '12'.*brackets", TE, lambda b: made(weights="12")),
    ("weights: .*got str 'a'.*quotes", TE, lambda b: made(weights=["a"])),
    ("weights: .*got int 1.*brackets", TE, lambda b: made(weights=1)),
    ("weights: .*got None", TE, lambda b: made(weights=[None])),
    ("weights must be finite.*nan", VE, lambda b: made(weights=[NAN])),
    ("as many weights, got 2.*one per place", VE, lambda b: made(weights=[1, 1])),
    ("partition: .*got int 3", TE, lambda b: made(partition=3)),
    ("partition is one of bands.*'x'", VE, lambda b: made(partition="x")),
    ("align: .*got float 1.5", TE, lambda b: made(align=1.5)),
    ("align: .*positive.*got 0", VE, lambda b: made(align=0)),
    ("align: .*got None", TE, lambda b: made(align=None)),
    ("block: .*got float 2.0; write 2", TE, lambda b: made(partition="cyclic", block=2.0)),
    ("overlap is one of auto, on, off, got 'yes'", VE, lambda b: made(overlap="yes")),
    ("places_per_controller: .*float 1.0; write 1", TE, lambda b: made(places_per_controller=1.0)),
    ("places_per_controller: .*got bool", TE, lambda b: made(places_per_controller=True)),
    ("dims: .*got int 4.*brackets", TE, lambda b: made(dims=4)),
    ("layout: a Layout.*got str 'blocks'", TE, lambda b: made(layout="blocks")),
    ("no keyword 'device'; did you mean devices", TE, lambda b: made(device="cpu")),
    ("kernel: .*got int 3.*Kernel.of", TE, lambda b: made(kernel=3)),
    ("no kernel 'nope'.*register_stencil", VE, lambda b: made(kernel="nope")),
    ("steps_per_launch: .*got str '2'", TE, lambda b: made(steps_per_launch="2")),
    ("at least 1 step, got 0", VE, lambda b: made(steps_per_launch=0)),
    ("math is one of strict, fast, got 'loose'", VE, lambda b: made(math="loose")),
    ("memory cap.*such as 512m or 4g, got 'lots'", VE, lambda b: made(memory_cap="lots")),
    ("memory cap.*2.63.*got '999", VE, lambda b: made(memory_cap="9" * 400)),
    ("memory cap.*got a whole number of 16610 bits", VE, lambda b: made(memory_cap=10**5000)),
    ("memory_cap: .*got float 1.5", TE, lambda b: made(memory_cap=1.5)),
    ("trace: True or False.*'run.json'", TE, lambda b: made(trace="run.json")),
    ("zero_copy: True or False.*'no'", TE, lambda b: made(zero_copy="no")),
    ("watchdog takes seconds.*-1", VE, lambda b: made(watchdog=-1)),
    ("watchdog: a number.*got list", TE, lambda b: made(watchdog=[])),
    ("check is one of off, on.*'a'", VE, lambda b: made(check="a")),
    ("tune: a number.*got str 'a'", TE, lambda b: made(tune="a")),
    ("tune is a number of seconds.*nan", VE, lambda b: made(tune=NAN)),
    ("comm: a communicator.*got int 3.*COMM_WORLD", TE, lambda b: made(comm=3)),
    ("iterations: .*got float 10.0; write 10", TE, lambda b: stencil(iterations=10.0)),
    ("iterations: .*got bool True", TE, lambda b: stencil(iterations=True)),
    ("must not be negative, got -1", VE, lambda b: stencil(iterations=-1)),
    ("no cell would be computed; use a larger", VE,
     lambda b: stencil((2, 20), STAR.shape, STAR.weights, 4)),
    ("shape, one pair.*got int 1", TE, lambda b: stencil(shape=1)),
    ("one pair .*got -1", VE, lambda b: stencil(shape=(-1, 1))),
    ("one pair .*False", VE, lambda b: stencil(shape=[(False, 1)], pattern=[1, 1])),
    ("must be finite, got nan", VE, lambda b: stencil(pattern=[1, 0, NAN])),
    ("are numbers, got 'a'", VE, lambda b: stencil(pattern=["a", 0, 1])),
    ("3 offsets.*2 weights; give one per offset", VE, lambda b: stencil(pattern=[1, 1])),
    ("a list or tuple of weights, got None", VE, lambda b: stencil(pattern=None)),
    ("are numbers, got '2'", VE, lambda b: stencil(factor="2")),
    ("cannot be 0; use 1", VE, lambda b: stencil(factor=0)),
    ("dtype: one of float32.*got str 'floaty'", TE, lambda b: stencil(dtype="floaty")),
    ("dtype: one of float32.*got None", TE, lambda b: stencil(dtype=None)),
    ("dtype is one of float32.*'float16'", VE, lambda b: stencil(dtype="float16")),
    ("init: a function.*got int 3", TE, lambda b: stencil(init=3)),
    ("output: a function.*got int 3", TE, lambda b: stencil(output=3)),
    ("n_controllers: .*got float 2.0; write 2", TE, lambda b: dry_run(P, 9, 2.0)),  # type: ignore[arg-type]
    ("Program.*got int 3", TE, lambda b: dry_run(3, 9, 2)),  # type: ignore[arg-type]
    ("overlap is one of .*'x'", VE, lambda b: dry_run(P, 9, 2, overlap="x")),  # type: ignore[arg-type]
    ("devices: .*got int 3", TE, lambda b: dry_run(P, 9, 2, devices=[3])),  # type: ignore[list-item]
    ("array.*got list.*asarray", TE, lambda b: reference_run(P, [1.0], 1, (True,))),  # type: ignore[arg-type]
    ("NumPy array.*got list.*asarray", VE, lambda b: b.run.scatter([[0.0] * 12] * 12)),  # type: ignore[arg-type]
    (r"\(12, 12\).*got \(3, 3\)", VE, lambda b: b.run.scatter(np.zeros((3, 3)))),
    ("root: .*got float 0.0; write 0", TE, lambda b: b.run.gather(0.0)),  # type: ignore[arg-type]
    ("root must be in 0..0, got 3", VE, lambda b: b.run.gather(3)),
    ("NumPy array.*got list.*asarray", VE, lambda b: b.run.gather(out=[0])),  # type: ignore[arg-type]
    ("init: a function.*got int 3", TE, lambda b: b.run.load(3)),  # type: ignore[arg-type]
    ("output: a function.*got None", TE, lambda b: b.run.visit(None)),  # type: ignore[arg-type]
    ("path: the name of a file.*float 3.5", TE, lambda b: b.run.load_file(3.5)),  # type: ignore[arg-type]
    ("path: the name of a file.*None", TE, lambda b: b.run.save(None)),  # type: ignore[arg-type]
    ("n_steps: .*got float 1.0; write 1", TE, lambda b: b.run.run(1.0)),  # type: ignore[arg-type]
    ("n_steps: .*got bool True", TE, lambda b: b.run.run(True)),
    ("not be negative, got -1", VE, lambda b: b.run.run(-1)),
    ("weights: .*got int 3", TE, lambda b: b.run.redistribute(weights=3)),  # type: ignore[arg-type]
]  # fmt: skip
CONTROLLERS: Sequence[Row] = [
    ("device: a text.*got int 3.*gpu", TE, lambda b: Controller(3)),  # type: ignore[arg-type]
    ("selectors: .*got int 3.*gpu", TE, lambda b: Controller.each(3)),  # type: ignore[arg-type]
    ("box: .*got float 3.0; write 3", TE, lambda b: b.controller.tile((3.0,))),  # type: ignore[arg-type]
    ("box: .*got str 'ab'", TE, lambda b: b.controller.tile("ab")),  # type: ignore[arg-type]
    (r"0 or more, got \(-3,\)", VE, lambda b: b.controller.tile((-3,))),
    ("at least one cell", VE, lambda b: b.controller.tile(())),
    ("dtype of a tile.*'floaty'.*align=True", TE, lambda b: b.controller.tile((3,), "floaty")),
    ("dtype of a tile.*object", TE, lambda b: b.controller.tile((3,), object)),
    ("dtype of a tile.*'U5'", TE, lambda b: b.controller.tile((3,), "U5")),
    ("one of tied, internal, host, got 'tide'", VE,
     lambda b: b.controller.tile((3,), kind="tide")),  # type: ignore[arg-type]
    (r"Shape, tile.*got tuple \(8, 8\).*Shape.of_extent", TE, lambda b: b.launch((8, 8))),
    ("Shape, tile.*got int 8", TE, lambda b: b.launch(8)),
    ("1 to 4 axes, got", VE, lambda b: b.launch(Shape.of_extent((1,) * 5))),
    ("a Kernel.*got str 'fill'.*Kernel.of", TE, lambda b: b.launch(kernel="fill")),
    ("'u' takes a tile or selection, got ndarray", TE, lambda b: b.launch(u=np.zeros(3))),
    ("'n': a number.*got str 'a'", TE, lambda b: b.launch(n="a")),
    ("'n': a number.*got complex", TE, lambda b: b.launch(n=1j)),
    ("'n' is a int, got nan", VE, lambda b: b.launch(n=NAN)),
    ("'n' is a int, got 1099511627776; give", VE, lambda b: b.launch(n=2**40)),
    ("group: .*got int 4.*brackets", TE, lambda b: b.launch(group=4)),
    ("group: .*got float 2.0; write 2", TE, lambda b: b.launch(group=(2.0, 2))),
    (r"\(8, 8\) cells.*\(3, 3\).*give an array of \(8, 8\)", VE,
     lambda b: b.u.write(np.zeros((3, 3)))),
    (r"\(4,\) cells.*\(3,\).*give an array of \(4,\)", VE, lambda b: b.inner.write(np.zeros(3))),
    ("values: numbers.*got str 'abc'", TE, lambda b: b.u.write("abc")),
    ("values: numbers.*got None", TE, lambda b: b.u.write(None)),  # type: ignore[arg-type]
    ("[Cc]annot cast", VE, lambda b: b.u.write(1j)),
    (r"values: numbers.*got list \[\[1\], \[1, 2\]\]", TE, lambda b: b.u.write([[1], [1, 2]])),
    ("holds 1.5, but int32", VE, lambda b: b.counts.write(1.5)),
    ("holds 1099511627776, but int32", VE, lambda b: b.counts.write([0, 1, 2, 2**40])),
    ("holds 1e.300, but float32", VE, lambda b: b.u.write(1e300)),
    (r"cells: a Shape.*got tuple \(2, 2\).*Shape\(lower, upper\)", TE,
     lambda b: b.u.select((2, 2))),  # type: ignore[arg-type]
    ("function: .*got int 3", TE, lambda b: b.controller.host_task(3, reading(b.u))),  # type: ignore[arg-type]
    ("an Access.*got TiedTile.*reading", TE, lambda b: b.controller.host_task(print, b.u)),  # type: ignore[arg-type]
    ("a tile or selection.*got list", TE, lambda b: reading([0, 0, 0])),  # type: ignore[arg-type]
    ("a tile or selection.*got None", TE, lambda b: writing(None)),  # type: ignore[arg-type]
    ("a tile or selection.*got Shape", TE, lambda b: updating(Shape((0,), (1,)))),  # type: ignore[arg-type]
    ("a tile or selection.*got ndarray", TE, lambda b: b.controller.move_to(np.zeros(3))),  # type: ignore[arg-type]
    ("a tile or selection.*got int 3", TE, lambda b: b.controller.wait(3)),  # type: ignore[arg-type]
    ("a TiedTile.*got Selection", TE, lambda b: b.controller.free(b.u[:])),  # type: ignore[arg-type]
    ("a TiedTile.*got int 3", TE, lambda b: b.controller.swap(b.u, 3)),  # type: ignore[arg-type]
    ("role of 'u' is one of reading, writing, updating, got 'output'", VE,
     lambda b: Kernel.of("k", "NEW(u) = 1;", roles={"u": "output"})),  # type: ignore[dict-item]
    ("role of 'u'.*reading, writing, updating.*'local'", VE,
     lambda b: Kernel.of("k", "NEW(u) = 1;", roles={"u": "local"})),
    ("roles: a dict.*got list", TE, lambda b: Kernel.of("k", "NEW(u) = 1;", roles=["u"])),  # type: ignore[arg-type]
    ("scalar 'a': a number.*got str 'b'", TE,
     lambda b: Kernel.of("k", "NEW(u) = 1;", scalars={"a": "b"})),  # type: ignore[dict-item]
    ("source: OpenCL C.*got bytes", TE, lambda b: Kernel.of("k", b"NEW(u) = 1;")),  # type: ignore[arg-type]
    ("name of a kernel.*got int 3", TE, lambda b: register_stencil(3, "NEW(u) = 1;")),  # type: ignore[arg-type]
    ("lower: .*got float 0.0; write 0", TE, lambda b: Shape((0.0,), (2,))),  # type: ignore[arg-type]
    ("lower: .*got int 0.*brackets", TE, lambda b: Shape(0, 2)),  # type: ignore[arg-type]
    ("extent: .*got bool True", TE, lambda b: Shape.of_extent((True,))),
]  # fmt: skip


@pytest.mark.parametrize("rows", [COMPUTATIONS, CONTROLLERS], ids=["computations", "controllers"])
def test_a_wrong_argument_is_refused_in_words(rows: Sequence[Row], bench: Bench) -> None:
    for message, kind, call in rows:
        with pytest.raises(kind, match=message) as caught:
            call(bench)
        assert type(caught.value) is kind, message


def test_integers_of_numpy_are_whole_numbers(bench: Bench) -> None:
    n = np.int64(2)
    stencil(np.int32(9), iterations=n)
    stencil(np.array([9, 8]), np.array(STAR.shape), np.array(STAR.weights).reshape(3, 3), n * 2)
    made(places_per_controller=n, align=n, memory_cap=np.int64(2**30))
    bench.run.run(np.int8(1))
    assert bench.controller.tile([np.int32(3), n * 2], "uint8").box == Shape((0, 0), (3, 4))
    assert Shape((n,), (np.uint8(5),)) == Shape((2,), (5,))
    bench.launch(n=np.uint8(3), group=(n, n))
    assert (bench.u.read() == 3).all()
    bench.counts.write(np.arange(4, dtype=np.uint64))
    assert bench.counts.read().tolist() == [0, 1, 2, 3]


JOB = """
import numpy as np
from mpi4py import MPI
from controllers import Computation, Stencil
mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
program, rank = mean.program("float32"), MPI.COMM_WORLD.rank
def made(program, sizes, **options):
    Computation(program, sizes, devices="reference", **options).close()
run = Computation(program, 9, devices="reference")
calls = [
    lambda: made("mean", 9),
    lambda: made(program, 9 if rank else 9.0),
    lambda: made(program if rank else "mean", 9),
    lambda: made(program, 9, weights="ab" if rank else None),
    lambda: run.scatter([0.0] * 9),
    lambda: run.run(1.0),
]
for number, call in enumerate(calls):
    try:
        call()
    except (TypeError, ValueError) as error:
        said = MPI.COMM_WORLD.gather(f"{number} {type(error).__name__} {error}")
        if rank == 0:
            print("\\n".join(said))
run.run(1)
run.close()
"""


@pytest.mark.whole
def test_what_is_wrong_on_one_rank_is_an_error_on_all() -> None:
    done = run_ranks(2, JOB)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    expected = [
        ("0 TypeError program: a Program", "0 TypeError program: a Program"),
        ("1 TypeError sizes: a whole", "1 ValueError rank 0: sizes: a whole"),
        ("2 TypeError program: a Program", "2 ValueError rank 0: program: a Program"),
        ("3 ValueError rank 1: weights: a list", "3 TypeError weights: a list"),
        ("4 ValueError rank 0: the whole array: a NumPy array",) * 2,
        ("5 TypeError n_steps: a whole", "5 TypeError n_steps: a whole"),
    ]
    assert len(said) == 12
    for line, start in zip(said, [text for pair in expected for text in pair], strict=True):
        assert line.startswith(start)

# SPDX-License-Identifier: MIT
"""Steps in OpenCL C: the bits of the same steps in Python, in every layout, among others."""
from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import run_ranks
from sample import sample

import controllers as ct
from controllers.executor import opencl
from controllers.language.traced import program_of

Gas = np.dtype([("rho", "f8"), ("m", "f8")])
RING = ct.Grid(y=23, x=18, boundary="periodic")


def curvature(f: Any) -> Any:
    return f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1] - 4 * f


def gray_scott(u: Any, v: Any, *, D: float = 0.16, F: float = 0.037, k: float = 0.06) -> Any:
    uvv = u * v * v
    return dict(
        u=u + D * curvature(u) - uvv + F * (1 - u), v=v + D * curvature(v) + uvv - F * v - k * v
    )


REACT = """
    const VALUE uvv = u(0, 0) * v(0, 0) * v(0, 0);
    u_new = u(0, 0) + D * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0)) - uvv
        + F * (1 - u(0, 0));
    v_new = v(0, 0) + D * (v(-1, 0) + v(1, 0) + v(0, -1) + v(0, 1) - 4 * v(0, 0)) + uvv
        - F * v(0, 0) - k * v(0, 0);
"""
LINE = 1 + Path(__file__).read_text().split("\n").index('REACT = """')
WHERE = f"test_opencl_c.py:{LINE}"


def react(**options: Any) -> ct.Step:
    return ct.opencl_c(
        REACT, reads=dict(u=1, v=1), writes=("u", "v"), scalars=dict(D=0.16, F=0.037, k=0.06),
        name="react", **options,
    )  # fmt: skip


def seeds(grid: ct.Grid, dtype: str = "float32") -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(4)
    return {name: rng.random(grid.shape).astype(dtype) for name in ("u", "v")}


def after(steps: Any, n_places: int, grid: ct.Grid, start: Any, **options: Any) -> dict[str, Any]:
    """The fields after two runs, the second with another parameter where there is one."""
    with ct.Computation(
        steps, grid, places_per_controller=n_places, devices="cpu:0", **options, **start
    ) as run:
        run.run(3)
        run.run(2, **({"F": 0.03} if "F" in run.program.scalars else {}))
        return {field.name: np.asarray(run[field.name]) for field in run.program.fields}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in (*one, *other))


@pytest.mark.parametrize("n_places", sample([3, 1, 2], 3))
def test_it_has_the_bits_of_the_traced_step(n_places: int) -> None:
    start = seeds(RING)
    made = program_of(ct.step(gray_scott), RING, dtype="float32").program
    right = ct.reference_run(made, ct.reference_run(made, start, 3), 2, scalars={"F": 0.03})
    assert same(after(react(), n_places, RING, start), right)
    assert not np.array_equal(right["u"], start["u"])


@pytest.mark.whole
def test_the_traced_step_has_its_bits_on_the_device() -> None:
    start = seeds(RING)
    assert same(after(react(), 2, RING, start), after(ct.step(gray_scott), 2, RING, start))


@pytest.mark.whole
def test_two_ranks_have_the_bits_of_one() -> None:
    text = f"""
import numpy as np
import controllers as ct
react = ct.opencl_c('''{REACT}''', reads=dict(u=1, v=1), writes=("u", "v"),
                    scalars=dict(D=0.16, F=0.037, k=0.06))
rng = np.random.default_rng(4)
start = {{name: rng.random((23, 18)).astype("float32") for name in ("u", "v")}}
grid = ct.Grid(y=23, x=18, boundary="periodic")
with ct.Computation(react, grid, devices="cpu:0", **start) as run:
    run.run(5)
    u = np.asarray(run.u)
    if run.comm.rank == 0:
        print(u.tobytes().hex())
"""
    job = run_ranks(2, text)
    assert job.returncode == 0, job.stderr
    with ct.Computation(react(), RING, devices="cpu:0", **seeds(RING)) as run:
        run.run(5)
        assert job.stdout.split()[-1] == np.asarray(run.u).tobytes().hex()


def test_a_reference_computes_it_and_without_one_that_is_refused() -> None:
    start = seeds(RING)
    made = program_of(react(reference=gray_scott), RING, dtype="float32").program
    traced = program_of(ct.step(gray_scott), RING, dtype="float32").program
    assert same(ct.reference_run(made, start, 3), ct.reference_run(traced, start, 3))
    alone = program_of(react(), RING, dtype="float32").program
    with pytest.raises(ValueError, match=rf"'react' \({WHERE}\) is written in OpenCL C"):
        ct.reference_run(alone, start, 1)
    with pytest.raises(ValueError, match="which the reference cannot run; give .*reference="):
        ct.Computation(react(), RING, devices="reference", **start)
    assert pickle.loads(pickle.dumps(made)).stages[0].elements == made.stages[0].elements


@pytest.mark.whole
def test_the_checked_mode_has_nothing_to_say_of_what_is_right() -> None:
    start, right = seeds(RING), react(reference=gray_scott)
    assert same(after(right, 1, RING, start), after(right, 2, RING, start, check=True))


def test_a_change_of_parameters_builds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with ct.Computation(react(), RING, devices="cpu:0", **seeds(RING)) as run:
        run.run(1)
        monkeypatch.setattr(opencl, "build", None)
        run.run(2, F=0.5, D=0.25)


@pytest.mark.whole
def test_steps_in_python_and_in_c_follow_one_another() -> None:
    grid = ct.Grid(y=20, x=27, upper=(1, 2))
    smooth = ct.step(lambda u, n: dict(u=(u[-1, 0] + u[1, 0] + n) / 3, n=n + 1))

    def grown(u: Any, n: Any, next: Any) -> Any:
        return dict(u=u + n + next[-1, 1], n=n * 3, next=next + 1)

    grow = ct.opencl_c(
        "u_new = u(0, 0) + n(0, 0) + next(-1, 1); n_new = n(0, 0) * 3; next_new = next(0, 0) + 1;",
        reads=dict(u=0, n=0, next=[(0, 0), (-1, 1)]), writes=("u", "n", "next"), name="grow",
        over=lambda u, y: (u > 1) & (y > 0.2), reference=grown,
    )  # fmt: skip
    boundary = {
        "u": {"y": ct.extrapolate(1), "x": ct.keep()}, "n": ct.fixed(0),
        "next": {"y": ct.fixed(1), "x": (ct.mirror(), ct.fixed(lambda y, t: y * t))},
    }  # fmt: skip
    steps = [smooth, grow, ct.repeat(smooth, 2)]
    dtypes = {"u": "float64", "n": "int32", "next": "float32"}
    start = {"u": lambda y, x: y * x, "n": np.arange(540).reshape(20, 27), "next": 0.5}
    options = dict(boundary=boundary, dtype=dtypes, dt=0.1)
    result = after(steps, 3, grid, start, **options)
    made = program_of(steps, grid, **options).program
    given = {
        "u": grid.coordinates("y")[:, None] * grid.coordinates("x"),
        "n": np.arange(540, dtype="int32").reshape(20, 27), "next": np.full((20, 27), 0.5, "f4"),
    }  # fmt: skip
    assert same(result, ct.reference_run(made, given, 5))


def flow(q: Any) -> Any:
    flux = q * (q.m / q.rho)
    return dict(q=q - 0.1 * (flux.at("y", 1) - flux.at("y", -1)))


@pytest.mark.whole
def test_components_of_structs_have_names(tmp_path: Path) -> None:
    (tmp_path / "flow.cl").write_text("""
// functions of its own come first; u(7, 7) in a comment is none
double flux(const double a, const double m, const double rho) { return a * (m / rho); }
#define FLUX(q, i) flux(q(i, 0), q_m(i, 0), q_rho(i, 0))
ELEMENT {
    q_rho_new = q_rho(0, 0) - 0.1 * (FLUX(q_rho, 1) - FLUX(q_rho, -1));
    q_m_new = q_m(0, 0) - 0.1 * (FLUX(q_m, 1) - FLUX(q_m, -1));
}
""")
    made = ct.opencl_c(tmp_path / "flow.cl", reads=dict(q=dict(y=1)), writes="q", reference=flow)
    part = ct.opencl_c(
        "q_m_new = q_m(0, 0) / 2;", reads={"q.m": 0}, writes=["q.m"],
        reference=lambda q: dict(q=q / 2),
    )  # fmt: skip
    options = dict(boundary={"y": ct.mirror(m=-1), "x": "periodic"}, dtype=Gas)
    grid = ct.Grid(y=21, x=16)
    halve = ct.step(lambda q: dict(q=ct.struct(Gas, rho=q.rho, m=q.m / 2)))
    rng = np.random.default_rng(3)
    start = {name: 1 + rng.random(grid.shape) for name in ("q_rho", "q_m")}
    traced, own = (program_of(s, grid, **options).program
                   for s in ([ct.step(flow), halve], [made, part]))  # fmt: skip
    right = ct.reference_run(traced, start, 5)
    assert same(right, ct.reference_run(own, start, 5))
    whole = np.empty(grid.shape, Gas)
    whole["rho"], whole["m"] = start["q_rho"], start["q_m"]
    assert same(after([made, part], 2, grid, {"q": whole}, **options), right)
    assert made.name == "flow"


def test_times_coordinates_and_indices_have_names() -> None:
    grid = ct.Grid(y=20, x=27, upper=(1, 2))

    def drive(u: Any, *, rate: float = 0.5, t: Any, dt: Any, x: Any) -> Any:
        return dict(u=u + x * rate + t * dt)

    text = """
        if (INDEX(0) == 3 && INDEX(1) > 4) { u_new = 7; return; }
        u_new = u(0, 0) + x * rate + t * dt;
    """
    made = ct.opencl_c(
        text, reads=dict(u=0), writes="u", scalars=dict(rate=0.5, t=None, dt=None, x=None)
    )
    start, options = {"u": np.ones(grid.shape, "float32")}, {"dt": 0.5, "dtype": "float32"}
    traced = program_of(ct.step(drive), grid, **options).program
    right = ct.reference_run(traced, start, 5)["u"]
    right[3, 5:] = 7
    assert np.array_equal(after(made, 3, grid, start, **options)["u"], right)


@pytest.mark.whole
def test_other_steps_and_methods_call_it() -> None:
    rate = ct.opencl_c("u_new = -u(0) * a;", reads=dict(u=0), writes="u", scalars=["a"],
                       reference=lambda u, *, a: dict(u=-u * a))  # fmt: skip

    @ct.step
    def both(u: Any, v: Any) -> Any:
        return dict(u=rate(u, a=2)["u"] + rate(v, a=3)["u"], v=u * rate(v, a=5)["u"])

    start = {"u": np.arange(9.0), "v": np.ones(9)}
    made = program_of(both, ct.Grid(x=9)).program
    assert len({*made.stages[0].elements}) == 2
    assert ct.reference_run(made, start, 1)["u"].tolist() == [-3 - 2 * u for u in range(9)]
    assert same(after(both, 2, ct.Grid(x=9), start), ct.reference_run(made, start, 5))
    with ct.Computation(ct.rk3(rate, dt=0.5), ct.Grid(x=5), u=1, devices="cpu:0") as run:
        run.run(2, a=1)
        assert np.round(run.u[0], 6) == 0.365017


def test_other_steps_give_it_fields_and_scalars() -> None:
    rate = ct.opencl_c("u_new = -u(0) * a;", reads=dict(u=0), writes="u", scalars=["a"])
    mark = ct.opencl_c("w_new = INDEX(0);", reads={}, writes="w")
    for wrong, words in (
        (lambda u: dict(u=rate(u[1], a=1)["u"]), "takes fields themselves"),
        (lambda u: dict(u=rate(u, a=1)["u"][1]), "has no neighbours"),
        (lambda u: dict(u=rate(u)["u"]), "'a' has no value and no default"),
        (lambda u: dict(u=rate(u, a=u)["u"]), "is a number or a coordinate"),
        (lambda u: dict(u=rate(u, b=1)["u"]), "no scalar 'b'"),
        (lambda u, w: dict(u=mark(w)["w"]), "on the field 'w', which it neither reads nor updates"),
        (lambda u: dict(u=rate(u, u)["u"]), "takes the fields u, got 2"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            program_of(ct.step(wrong), ct.Grid(x=9))


@pytest.mark.whole
@pytest.mark.parametrize("field", ["k", "max", "c"])
def test_fields_may_be_called_as_what_kernels_have(field: str) -> None:
    text = f"{field}_new = {field}(-1) + {field}(1);"
    made = ct.opencl_c(text, reads={field: 1}, writes=field)
    start = np.arange(9)
    grid = ct.Grid(x=9, boundary="periodic")
    with ct.Computation(made, grid, devices="cpu:0", check=True, **{field: start}) as run:
        run.run(1)
        assert np.array_equal(run[field], np.roll(start, 1) + np.roll(start, -1))


def test_what_is_explained_and_written_says_where_it_comes_from() -> None:
    with ct.Computation(react(), RING, devices="cpu:0", **seeds(RING)) as run:
        text, (made,) = run.explain(), run.configurations()
    assert f"u[i, j] = u of react, in OpenCL C ({WHERE})" in text
    assert "flops as react does them; 16 bytes" in text
    assert f"generated around OpenCL C ({WHERE}), strategy 'rows'" in text
    assert "as declared, reads u at (-1, -1), (-1, 0)" in text
    assert f'#line {LINE} "test_opencl_c.py"' in made.text and "FP_CONTRACT OFF" in made.text
    with pytest.raises(ValueError, match="neither coordinates, indices, half points, OpenCL C"):
        ct.Computation(react(), RING, devices="cpu:0", steps_per_launch=2, **seeds(RING))

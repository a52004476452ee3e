# SPDX-License-Identifier: MIT
"""COSP's nine benchmarks, in examples/, beside plain NumPy: on a device, on places, on ranks."""
from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from mpi_jobs import run_ranks
from sample import sample

EXAMPLES = Path(__file__).parents[1] / "examples"
Array: TypeAlias = npt.NDArray[Any]
SIZES = {
    "vector_add": (1000,), "scalar_product": (50, 40), "black_scholes": (200,), "dct": (30,),
    "batched_fft": (20,), "filter_bank": (300,), "monte_carlo": (2000,), "srad": (24, 5),
    "euler_mesh": (8, 3),
}  # fmt: skip
FEW = {"vector_add": (9,), "scalar_product": (3, 8), "dct": (2,), "filter_bank": (20,),
       "monte_carlo": (5,), "srad": (24, 2), "euler_mesh": (3, 1)}   # for the reference
PLACES = {"devices": "cpu", "places_per_controller": 3}


def found(name: str, *sizes: int, **options: Any) -> Any:
    example = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    return example["main"](*(sizes or SIZES[name]), **(options or {"devices": "cpu"}))


def same(one: Any, other: Any) -> bool:
    pairs = zip(one, other, strict=True) if isinstance(one, list | tuple) else [(one, other)]
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", sample(SIZES, 9))
def test_places_give_the_bits_of_one_device(name: str) -> None:
    assert same(found(name, **PLACES), found(name))


@pytest.mark.parametrize("name", sample(FEW, 7))
def test_devices_give_the_bits_of_the_reference(name: str) -> None:
    """But for functions that devices round, and what is computed otherwise in OpenCL C."""
    assert same(found(name, *FEW[name], devices="reference"), found(name, *FEW[name]))


NAMES = [*SIZES]


@pytest.mark.whole
@pytest.mark.parametrize("names", sample([NAMES[::4], NAMES[1::4], NAMES[2::4] + NAMES[3::4]], 3))
def test_all_run_on_two_ranks(names: list[str]) -> None:
    """Each gives the bits of one process, which both ranks compute, too."""
    job = run_ranks(2, f"""
import runpy, sys
import numpy as np
from hitmap import SerialCommunicator
for name in {names}:
    sizes = {SIZES}[name]
    main = runpy.run_path({str(EXAMPLES)!r} + "/" + name + ".py")["main"]
    both = [main(*sizes, devices="cpu"), main(*sizes, devices="cpu", comm=SerialCommunicator())]
    flat = [np.concatenate([np.ravel(a) for a in (one if type(one) in (list, tuple) else [one])])
            for one in both if not (name == "srad" and one[1] is None)]
    assert all(np.array_equal(one, flat[-1]) for one in flat), name
    print(name, "is right")
""")  # fmt: skip
    assert job.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == sorted(f"{name} is right" for name in names * 2)


def test_vectors_are_added() -> None:
    a, b = np.arange(1000, dtype="f4"), np.linspace(0, 1, 1000, dtype="f4")
    assert np.array_equal(found("vector_add"), a + b)


def test_products_are_sums_in_the_order_of_elements_and_exact_over_all() -> None:
    random = np.random.default_rng(1)
    a, b = ((random.random((50, 40)) - 0.5).astype("f4") for _ in range(2))
    each, together = found("scalar_product")
    right = np.zeros(50, "f4")
    for element in range(40):
        right += a[:, element] * b[:, element]
    assert np.array_equal(each, right)
    assert together == math.fsum((a.astype("f8") * b).ravel().tolist())


def test_options_have_the_prices_of_the_formula() -> None:
    def below(d: float) -> float:
        return (1 + math.erf(d / math.sqrt(2))) / 2

    for stock, strike, years, call, put in zip(*found("black_scholes"), strict=True):
        spread = 0.3 * math.sqrt(years)
        d = (math.log(stock / strike) + (0.02 + 0.3**2 / 2) * years) / spread
        later = strike * math.exp(-0.02 * years)
        right = stock * below(d) - later * below(d - spread)
        assert call == pytest.approx(right, abs=5e-5)
        assert put == pytest.approx(right + later - stock, abs=5e-5)


def test_cosines_are_those_of_the_definition_and_blocks_come_back() -> None:
    blocks, there, back = found("dct")
    waves = [[math.cos(math.pi * k * (2 * m + 1) / 16) for m in range(8)] for k in range(8)]
    scales = np.array([math.sqrt(1 / 8)] + 7 * [math.sqrt(1 / 4)])
    right = np.einsum("km,bmn,ln->bkl", waves, blocks, waves) * np.outer(scales, scales)
    assert np.allclose(there, right, rtol=0, atol=1e-3)
    assert np.allclose(back, blocks, rtol=0, atol=1e-3)


def test_rows_are_transformed_as_by_numpy_and_come_back() -> None:
    rows, waves, back = found("batched_fft")
    assert np.allclose(waves, np.fft.fft(rows), rtol=0, atol=2e-5)
    assert np.allclose(back / 64, rows, rtol=0, atol=2e-6)


def test_bands_are_convolutions_of_every_eighth_sample() -> None:
    heard, again = found("filter_bank")
    lags, window = np.arange(32), np.hanning(32) * 2 * math.sqrt(8) / np.hanning(32).sum()
    right = np.zeros(len(heard))
    for band in range(8):
        taps = np.cos(math.pi * (band + 0.5) / 8 * (lags - 31 / 2 + 4)) * window
        split = np.convolve(heard, taps)[: len(heard)]
        split[np.arange(len(heard)) % 8 != 0] = 0
        right += np.convolve(split, taps)[: len(heard)]
    assert np.allclose(again, right, rtol=0, atol=2e-6)
    assert np.std(again[100:]) > 0.5 * np.std(heard)


@pytest.mark.parametrize(
    "counter, key, words",
    [
        ("00000000" * 4, "00000000" * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff" * 4, "ffffffff" * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a8885a308d313198a2e03707344", "a4093822299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)  # fmt: skip
def test_random_words_are_those_that_the_authors_publish(
    counter: str, key: str, words: str
) -> None:
    """The known answers of Random123 for Philox 4x32-10."""
    def parts(text: str) -> list[int]:
        return [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]

    made = runpy.run_path(str(EXAMPLES / "monte_carlo.py"))["philox"](parts(counter), parts(key))
    assert [f"{word:08x}" for word in made] == words.split()


def test_points_are_counted_as_by_whole_numbers_of_python() -> None:
    philox = runpy.run_path(str(EXAMPLES / "monte_carlo.py"))["philox"]
    inside = sum(
        sum((word + 0.5) ** 2 for word in philox([number, 0, 0, 0], [1, 0])) < 2.0**64
        for number in range(2000)
    )  # fmt: skip
    assert found("monte_carlo") == 16 * inside / 2000
    assert found("monte_carlo", 100_000) == pytest.approx(math.pi**2 / 2, abs=0.1)


@pytest.mark.whole
def test_speckle_is_diffused_as_by_plain_numpy() -> None:
    start, image = found("srad")
    u, centres = start.astype("f8"), (np.arange(24) + 0.5) / 24
    corner = np.ix_(centres < 0.15, centres < 0.15)
    for _ in range(5):
        noise = u[corner].var() / u[corner].mean() ** 2
        p = np.pad(u, 1, mode="edge")
        d = [p[:-2, 1:-1] - u, p[2:, 1:-1] - u, p[1:-1, :-2] - u, p[1:-1, 2:] - u]
        q = 0.5 * sum(x**2 for x in d) / u**2 - 0.0625 * (sum(d) / u) ** 2
        q /= (1 + 0.25 * sum(d) / u) ** 2
        c = np.clip(1 / (1 + (q - noise) / (noise * (1 + noise))), 0, 1)
        e = np.pad(c, 1, mode="edge")
        u = u + 0.125 * (d[0] * c + d[1] * e[2:, 1:-1] + d[2] * c + d[3] * e[1:-1, 2:])
    assert np.allclose(image, u, rtol=2e-4)
    assert image[8:16, 8:16].std() < 0.8 * start[8:16, 8:16].std()


def gas(q: Array) -> tuple[Array, Array, Array, Array]:
    u, v = q[:, 1] / q[:, 0], q[:, 2] / q[:, 0]
    pressure = 0.4 * (q[:, 3] - 0.5 * q[:, 0] * (u**2 + v**2))
    return u, v, pressure, np.sqrt(1.4 * pressure / q[:, 0])


def through(q: Array, n: Array) -> tuple[Array, Array]:
    u, v, pressure, sound = gas(q)
    speed = u * n[:, 0] + v * n[:, 1]
    flux = q * speed[:, None]
    flux[:, 1:3] += pressure[:, None] * n
    flux[:, 3] += pressure * speed
    return flux, abs(speed) + sound * np.hypot(*n.T)


def test_a_gas_on_a_mesh_flows_as_in_plain_numpy() -> None:
    example = runpy.run_path(str(EXAMPLES / "euler_mesh.py"))
    sides, normals = example["mesh"](8)
    far = np.array([1.4, 1.68, 0, 2.5 + 0.5 * 1.4 * 1.2**2])
    q = np.where(np.random.default_rng(2).random(64)[:, None] < 0.5, 1.5, 1) * far
    for _ in range(3):
        stage = q
        for part in (1 / 3, 1 / 2, 1):
            total, fastest = np.zeros_like(q), np.zeros(64)
            for face in range(4):
                n, at = normals[:, 2 * face : 2 * face + 2], sides[:, face]
                other = np.where(at[:, None] < 0, far, stage[at])
                (here, speed), (there, its) = through(stage, n), through(other, n)
                most = np.maximum(speed, its)
                total += 0.5 * (here + there - most[:, None] * (other - stage))
                fastest += most
            stage = q - part * total / fastest[:, None]
        q = stage
    assert np.allclose(found("euler_mesh"), q, rtol=2e-5, atol=2e-5)


def test_a_uniform_flow_stays_as_it_is_on_a_bent_mesh() -> None:
    example = runpy.run_path(str(EXAMPLES / "euler_mesh.py"))
    flow = example["main"](12, 5, 0.0, devices="cpu")
    assert np.allclose(flow, example["FAR"], rtol=0, atol=1e-5)

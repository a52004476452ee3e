# SPDX-License-Identifier: MIT
"""Files for ParaView, read by a parser that knows nothing of how they were written."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest
from kept_programs import PROGRAMS, ran
from mpi_jobs import helpers_path, run_ranks

import controllers as ct

DTYPES_BEYOND = ("float64", "int16", "int32", "int64", "uint8")
DTYPES = {"Float32": "<f4", "Float64": "<f8", "Int16": "<i2", "Int32": "<i4", "Int64": "<i8",
          "UInt8": "<u1"}  # fmt: skip
JOB = """import sys
import numpy as np
import controllers as ct
from kept_programs import PROGRAMS
from hitmap.comm import default_communicator
comm = default_communicator()
with PROGRAMS["wave"](devices="reference", places_per_controller=2, partition="blocks",
                      comm=comm) as run:
    run.run(4, output=(sys.argv[1], ct.every(steps=2)))
"""


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def piece(path: Path) -> tuple[list[int], dict[str, npt.NDArray[Any]], ElementTree.Element]:
    """The extent of an image, its cells by name, [z][y][x], and what the file says."""
    content = path.read_bytes()
    head, mark, rest = content.partition(b'<AppendedData encoding="raw">')
    assert mark and rest.lstrip().startswith(b"_")
    root = ElementTree.fromstring(head.decode() + "</VTKFile>")
    assert root.attrib["byte_order"] == "LittleEndian" and root.attrib["header_type"] == "UInt64"
    data = rest[rest.index(b"_") + 1 :]
    image = root.find("ImageData")
    assert image is not None
    found = image.find("Piece")
    assert found is not None
    extent = [int(n) for n in numbers(found.attrib["Extent"])]
    counts = [max(1, high - low) for low, high in zip(extent[::2], extent[1::2])]
    arrays = {}
    for one in found.iter("DataArray"):
        first = int(one.attrib["offset"])
        n_bytes = int.from_bytes(data[first : first + 8], "little")
        values = np.frombuffer(data[first + 8 : first + 8 + n_bytes], DTYPES[one.attrib["type"]])
        arrays[one.attrib["Name"]] = values.reshape(counts[::-1])
    return extent, arrays, image


def moments(path: Path) -> list[tuple[float, Path]]:
    """What a collection lists."""
    found = ElementTree.parse(path).iter("DataSet")
    return [(float(one.attrib["timestep"]), path.parent / one.attrib["file"]) for one in found]


def whole(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The cells of a moment, of one file or of pieces, each cell of which comes once."""
    if path.suffix == ".vti":
        return piece(path)[1]
    root = ElementTree.parse(path).getroot()
    image = root.find("PImageData")
    assert image is not None
    ends = [int(n) for n in numbers(image.attrib["WholeExtent"])]
    shape = [max(1, high - low) for low, high in zip(ends[::2], ends[1::2])][::-1]
    found: dict[str, npt.NDArray[Any]] = {}
    count = np.zeros(shape, int)
    for one in image.iter("Piece"):
        extent, arrays, own = piece(path.parent / one.attrib["Source"])
        assert extent == [int(n) for n in numbers(one.attrib["Extent"])]
        assert own.attrib["Origin"] == image.attrib["Origin"]
        where = tuple(
            slice(low, max(high, low + 1)) for low, high in zip(extent[-2::-2], extent[-1::-2])
        )
        count[where] += 1
        for name, cells in arrays.items():
            found.setdefault(name, np.zeros(shape, cells.dtype))[where] = cells
    assert (count == 1).all()
    return found


def test_moments_of_a_plane_are_images_of_its_cells(tmp_path: Path) -> None:
    with PROGRAMS["wave"](devices="reference") as run:
        run.run(5, output=(tmp_path / "a.pvd", ct.every(steps=2)))
    found = moments(tmp_path / "a.pvd")
    assert [time for time, _ in found] == [0, 1, 2, 2.5]
    for (_, path), step in zip(found, (0, 2, 4, 5)):
        assert path.suffix == ".vti"
        cells, right = whole(path), ran("wave", step)
        for name in ("u", "old"):
            assert cells[name][0].tobytes() == right[name].tobytes()
    _, _, image = piece(found[0][1])
    assert numbers(image.attrib["Origin"]) == [0, 0, 0]
    assert numbers(image.attrib["Spacing"])[:2] == [5, 5]
    assert numbers(image.attrib["WholeExtent"]) == [0, 19, 0, 14, 0, 0]


@pytest.mark.parametrize("ranks", [pytest.param(n, marks=pytest.mark.whole) for n in (1, 3)])
def test_each_place_writes_a_piece(tmp_path: Path, ranks: int) -> None:
    outcome = run_ranks(ranks, ["-c", JOB, str(tmp_path / "a.pvd")], env=helpers_path())
    assert outcome.returncode == 0, outcome.stderr
    for (_, path), step in zip(moments(tmp_path / "a.pvd"), (0, 2, 4)):
        assert path.suffix == ".pvti"
        cells, right = whole(path), ran("wave", step)
        assert cells["u"][0].tobytes() == right["u"].tobytes()
    assert len([*tmp_path.glob("a/*.vti")]) == 3 * 2 * ranks


@pytest.mark.parametrize("dtype", [
    "float32", *(pytest.param(one, marks=pytest.mark.whole) for one in DTYPES_BEYOND)
])
def test_solids_have_their_x_first_and_any_dtype(tmp_path: Path, dtype: str) -> None:
    @ct.step
    def turn(u):
        return dict(u=u[0, 0, 1])

    grid = ct.Grid(z=4, y=5, x=7, lower=(1, 2, 3), spacing=(0.5, 1, 2), boundary="periodic")
    start = np.arange(140).reshape(4, 5, 7)
    with ct.Computation(turn, grid, u=start, dtype=dtype, devices="reference",
                        places_per_controller=2) as run:  # fmt: skip
        run.save(tmp_path / "a.pvd")
        run.save(tmp_path / "b.pvd", stride=2, x=slice(5, None))
        run.save(tmp_path / "c.pvd", z=1.25)
    ((time, path),) = moments(tmp_path / "a.pvd")
    assert time == 0 and whole(path)["u"].dtype == dtype
    assert (whole(path)["u"] == start).all()
    text = path.read_text()
    assert 'Origin="3.0 2.0 1.0" Spacing="2.0 1.0 0.5"' in text
    ((_, coarse),) = moments(tmp_path / "b.pvd")
    assert (whole(coarse)["u"] == start[::2, ::2, 1::2]).all()
    found = re.search('Origin="(.*?)" Spacing="(.*?)"', coarse.read_text())
    assert found is not None and numbers(found[2]) == [4, 2, 1]
    assert numbers(found[1]) == [4, 1.5, 0.75]      # cells are as wide as their spacing
    ((_, plane),) = moments(tmp_path / "c.pvd")
    assert (whole(plane)["u"][0] == start[0]).all()


def test_a_run_that_goes_on_lists_each_moment_once(tmp_path: Path) -> None:
    out, kept = (tmp_path / "a.pvd", ct.every(steps=2)), (tmp_path / "kept", ct.every(steps=5))
    for n_steps, restart, places in ((8, "no", 2), (11, "require", 3)):
        with PROGRAMS["wave"](devices="reference", places_per_controller=places) as run:
            run.run(n_steps, output=out, checkpoint=kept, restart=restart)
    found = moments(out[0])
    assert [time for time, _ in found] == [0, 1, 2, 3, 4, 5, 5.5]
    assert whole(found[-2][1])["u"][0].tobytes() == ran("wave", 10)["u"].tobytes()
    with PROGRAMS["wave"](devices="reference") as run:
        run.save(out[0])
    assert [time for time, _ in moments(out[0])] == [0]


def test_what_images_cannot_hold_is_refused(tmp_path: Path) -> None:
    with PROGRAMS["sound"](devices="reference") as run:
        with pytest.raises(ValueError, match="vx lies elsewhere than p.*write to .zarr"):
            run.save(tmp_path / "a.pvd")
        run.save(tmp_path / "a.pvd", fields="p")
    (tmp_path / "b.pvd").write_text("of the user's")
    (tmp_path / "c").mkdir()
    with PROGRAMS["wave"](devices="reference") as run:
        for name in "bc":
            with pytest.raises(OSError, match="no series that a run has written"):
                run.save(tmp_path / f"{name}.pvd")
    assert (tmp_path / "b.pvd").read_text() == "of the user's"

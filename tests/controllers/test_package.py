# SPDX-License-Identifier: MIT
from __future__ import annotations

import builtins
import importlib
import importlib.resources
import json
import os
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import controllers
import hitmap
from controllers import ControllersError

LOADED = "import json, sys; {}; print(json.dumps(sorted(sys.modules)))"
HEAVY = ("pyopencl", "mpi4py.MPI", "matplotlib")


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `statement`."""
    command = [sys.executable, "-c", LOADED.format(statement)]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(output.stdout))


@pytest.mark.parametrize("name", controllers._HOMES)
def test_a_public_name_can_be_imported_and_has_a_docstring(name: str) -> None:
    found = getattr(controllers, name)
    assert found.__name__ == ("Workspace" if name == "workspace" else name)
    assert found.__doc__
    is_error = isinstance(found, type) and issubclass(found, Exception)
    assert found.__module__ == "controllers" if is_error else found.__module__ != "controllers"


def test_all_public_names_are_listed_in_order() -> None:
    assert controllers.__all__ == sorted(controllers.__all__)
    assert len(set(controllers.__all__)) == len(controllers.__all__)
    namespace: dict[str, object] = {}
    exec("from controllers import *", namespace)
    assert {*namespace} - {"__builtins__"} == {*controllers.__all__}
    own = {name for name in controllers._HOMES if hasattr(builtins, name)}
    assert own == {"all", "any", "max", "min", "sum"}   # which `import *` leaves Python's
    assert {*controllers._HOMES} == {*controllers.__all__} | own


def test_every_error_class_is_public_and_has_the_one_base() -> None:
    for home in (*controllers._HOMES.values(), "controllers.cli.run", "controllers.doctor.facts"):
        importlib.import_module(home)
    found = {ControllersError, *ControllersError.__subclasses__()}
    assert {kind.__name__ for kind in found} <= {*controllers.__all__}
    for kind in found - {ControllersError}:
        assert len(kind.__bases__) == 2 and kind.__bases__[1].__module__ == "builtins"
        assert pickle.loads(pickle.dumps(kind)) is kind
    own = {
        kind.__name__
        for name, module in sys.modules.items() if name.startswith("controllers.")
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
        and kind.__name__.endswith("Error") and kind.__module__.startswith("controllers")
    }  # fmt: skip
    assert own <= {*controllers.__all__}


def test_dir_and_help_show_what_is_public() -> None:
    assert {*dir(controllers)} - {"__doc__", "__version__"} == {*controllers._HOMES}
    assert {*dir(hitmap)} - {"__doc__"} == {*hitmap.__all__}
    text = pydoc.plain(pydoc.render_doc(controllers))
    for name in ("Computation", "dry_run", "MemoryCapError"):
        assert name in text


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = controllers.no_such_name  # type: ignore[attr-defined]


def test_importing_controllers_loads_neither_opencl_nor_mpi() -> None:
    assert not modules_after("import controllers").intersection(HEAVY)


STATE = """
import atexit, faulthandler, logging, os, resource, signal, sys, threading, warnings
import numpy

def state():
    limits = {name: resource.getrlimit(getattr(resource, name))
              for name in dir(resource) if name.startswith("RLIMIT_")}
    return {
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook),
        "exits": (sys.exit, os._exit, os.abort, atexit._ncallbacks()),
        "signals": {n: signal.getsignal(n) for n in signal.valid_signals()},
        "faulthandler": faulthandler.is_enabled(),
        "tracing": (sys.gettrace(), sys.getprofile(), threading._trace_hook),
        "threads": threading.enumerate(),
        "files": sorted(os.listdir("/proc/self/fd"))[:-1],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": [*sys.path],
        "limits": limits,
        "warnings": ([*warnings.filters], warnings.formatwarning, warnings.showwarning),
        "logging": (logging.root.level, [*logging.root.handlers], logging.raiseExceptions),
        "numpy": numpy.geterr(),
        "recursion": sys.getrecursionlimit(),
    }

before = state()
import controllers, hitmap
from controllers import Plan, Program, Stencil
for name, was in before.items():
    assert state()[name] == was, (name, was, state()[name])
"""


def test_importing_controllers_changes_nothing_in_a_process_that_runs_alone() -> None:
    lone = {name: text for name, text in os.environ.items()
            if not name.startswith(("PMI_", "OMPI_", "PMIX_", "SLURM_", "MV2_"))}  # fmt: skip
    job = subprocess.run(
        [sys.executable, "-c", STATE], capture_output=True, text=True, timeout=60, env=lone
    )
    assert job.returncode == 0, job.stderr


def test_descriptions_and_plans_need_neither_opencl_nor_mpi() -> None:
    names = "Plan, Program, Report, Stencil, read_patterns, reference_run"
    assert not modules_after(f"from controllers import {names}").intersection(HEAVY)
    assert not modules_after("import controllers.kgt").intersection(HEAVY)


def test_a_run_by_the_skeleton_loads_them() -> None:
    assert "pyopencl" in modules_after("from controllers import Computation")


def test_the_version_is_that_of_the_installed_package() -> None:
    numbers = controllers.__version__.split(".")
    assert len(numbers) == 3 and all(number.isdigit() for number in numbers)


def test_the_kernels_are_found_as_a_package_of_text_files() -> None:
    folder = importlib.resources.files("kernels_cl")
    names = {entry.name for entry in folder.iterdir() if entry.is_file()}
    assert {"__init__.py", "copy_box.cl"} < names
    assert {Path(name).suffix for name in names - {"__init__.py"}} == {".cl"}


def test_typed_packages_say_so() -> None:
    for package in ("controllers", "hitmap"):
        assert importlib.resources.files(package).joinpath("py.typed").is_file()

# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from controllers.program.identifier import MAX_LENGTH, check_field_name, check_identifier

PLAIN = "u c jacobi_2d4 T rho_x t floats new"
MALFORMED = ["", "2d4", "a-b", "a b", "a\n", "ü", "_u", "u_", "a__b", "../x", "x;y", "u" * 49]
WORDS = """float float4 double16 half size_t kernel __kernel restrict image2d_t bool int3 while
float2x4 CLK_LOCAL_MEM_FENCE M_PI cl_khr_fp64 NAN atomic_int"""
OF_KERNELS = "item c_u extent_0 u_new u_first u_pitch_0 kgt_x start_1 t0 get_group_id"


@pytest.mark.parametrize("name", [*PLAIN.split(), "a" * MAX_LENGTH])
def test_plain_names_pass(name: str) -> None:
    assert check_identifier(name, "stencil") == name
    assert check_field_name(name) == name


@pytest.mark.parametrize("name", [*MALFORMED, *WORDS.split()])
def test_names_that_are_no_identifiers_or_words_of_the_language_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="the name of a stencil .* choose another"):
        check_identifier(name, "stencil")
    with pytest.raises(ValueError, match="the name of a field .* choose another"):
        check_field_name(name)


@pytest.mark.parametrize("name", OF_KERNELS.split())
def test_only_fields_may_not_be_called_like_variables_of_kernels(name: str) -> None:
    with pytest.raises(ValueError, match="kernels use themselves"):
        check_field_name(name)
    assert check_identifier(name, "stencil") == name


def test_a_long_name_is_cut_in_the_message() -> None:
    with pytest.raises(ValueError, match="limit is") as caught:
        check_identifier("x" * 10**6, "stencil")
    assert len(str(caught.value)) < 200

from __future__ import annotations

from importlib.metadata import distribution

import pytest

from deploy.licences import allowed, closure
from deploy.spdx import licence

CHOICES = [
    pytest.param("MIT", True, id="plain"),
    pytest.param("EPL-2.0 OR BSD-3-Clause", True, id="choice"),
    pytest.param("GPL-3.0-only OR MIT", True, id="one-of-a-choice-is-enough"),
    pytest.param("MIT AND GPL-3.0-only", False, id="all-of-several-count"),
    pytest.param("GPL-3.0-only", False, id="not-on-the-list"),
    pytest.param("(MIT OR Apache-2.0) AND 0BSD", True, id="brackets"),
    pytest.param("", False, id="unknown"),
]


@pytest.mark.parametrize(("expression", "right"), CHOICES)
def test_a_licence_is_allowed_by_name(expression: str, right: bool) -> None:
    assert allowed(expression) is right


@pytest.mark.parametrize("name", sorted(closure(["all"])))
def test_every_package_has_a_licence_that_is_allowed(name: str) -> None:
    expression = licence(distribution(name))

    assert allowed(expression), expression

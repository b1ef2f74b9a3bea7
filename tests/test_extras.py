"""The command that installs an extra names the packages in it."""

from __future__ import annotations

import pytest

from gateway.extras import install_command


@pytest.mark.parametrize(
    ("extra", "package", "command"),
    [
        pytest.param("no-such", "gateway", "pip install '.[no-such]' in the checkout", id="none"),
        pytest.param("dpcontracts", "hypothesis", "pip install 'dpcontracts>=", id="other"),
        pytest.param("x", "no-such-package", "pip install 'no-such-package[x]'", id="absent"),
    ],
)
def test_the_command_has_the_packages_of_the_extra(extra: str, package: str, command: str) -> None:
    assert install_command(extra, package).startswith(command)

"""The optional dependencies of the package, as a command that installs them."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from shlex import quote
from typing import Final

_NAME: Final = re.compile(r"[\w.-]+")  # of a requirement, before its extras and versions


def not_installed(module: str, extra: str, package: str = "gateway") -> str:
    """Return the text about an absent `module` of an extra of `package`, with the remedy."""
    module = module.partition(".")[0]
    return f"the module {module!r} is not installed; run: {install_command(extra, package)}"


def install_command(extra: str, package: str = "gateway") -> str:
    """Return the command that installs the packages of an extra of `package` beside this one.

    It names those packages and not this one: the gateway is on no package index, so
    `gateway[jms]` installs neither from a checkout nor beside a wheel. The packages of an extra
    that this one includes are left out.
    """
    quoted = " ".join(f"'{each}'" for each in _packages(extra, package))
    if quoted:
        return f"{_installer()} {quoted}"
    if package == "gateway":
        return f"{_installer()} '.[{extra}]' in the checkout"
    return f"{_installer()} '{package}[{extra}]'"


def absent_packages(extra: str, package: str = "gateway") -> list[str]:
    """Return the names of the packages of an extra of `package` that this environment lacks."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # loads email

    absent = []
    for requirement in _packages(extra, package):
        name = _NAME.match(requirement)
        assert name is not None  # noqa: S101  # every requirement begins with a name
        try:
            version(name[0])
        except PackageNotFoundError:
            absent.append(name[0])
    return absent


def _packages(extra: str, package: str) -> list[str]:
    """Return the requirements of an extra of `package`; none where `package` is not installed."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415  # loads email

    marker = f"extra == '{extra}'"
    try:
        found = [each.partition(";") for each in requires(package) or ()]
    except PackageNotFoundError:
        return []
    return [
        name.strip()
        for name, _, condition in found
        if condition.strip().replace('"', "'") == marker and not name.startswith(f"{package}[")
    ]


def _installer() -> str:
    """Return the command that installs into this environment, whatever made it."""
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").exists():  # `uv tool install`: it has no pip
        return f"uv pip install --python {quote(sys.prefix)}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {quote(prefix.name)}"
    found = shutil.which("pip")
    if found is not None and os.path.dirname(found) == os.path.dirname(sys.executable):  # noqa: PTH120
        return "pip install"
    return f"{quote(sys.executable)} -m pip install"

"""The optional dependencies of the package, as a command that installs them."""

from __future__ import annotations


def install_command(extra: str, package: str = "gateway") -> str:
    """Return the command that installs the packages of an extra of `package`.

    It names those packages and not this one: the gateway is on no package index, so
    `gateway[jms]` installs neither from a checkout nor beside a wheel. The packages of an extra
    that this one includes are left out.
    """
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415  # loads email

    marker = f"extra == '{extra}'"
    try:
        found = [each.partition(";") for each in requires(package) or ()]
    except PackageNotFoundError:
        found = []
    packages = [
        name.strip()
        for name, _, condition in found
        if condition.strip().replace('"', "'") == marker and not name.startswith(f"{package}[")
    ]
    quoted = " ".join(f"'{name}'" for name in packages)
    if quoted:
        return f"pip install {quoted}"
    here = package == "gateway"
    return (
        f"pip install '.[{extra}]' in the checkout" if here else f"pip install '{package}[{extra}]'"
    )

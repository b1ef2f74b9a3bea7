"""References of a configuration to variables and files, and placeholders for absent secrets.

`${env:NAME}` refers to a variable, `${file:PATH}` to the content of a file. A placeholder is legal
where its reference stands, and the same at each place. It is never printed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin
from zlib import crc32

from gateway.untyped import Untyped

MAX_SECRET: Final = 1 << 20  # bytes; a larger or endless file is not a secret
REFERENCE: Final = re.compile(r"\$\{(env|file):([^}]*)\}")
REFERENCE_HINT: Final = "write ${env:NAME} or ${file:/path}"
MAX_WORD: Final = 16  # characters of a reference's name in its placeholder
SECRET_LENGTH: Final = 32  # characters
FIRST_PORT: Final = 1_024
PORTS: Final = 60_000
_BEFORE_PORT: Final = re.compile(r"://[^/]*:$")
WITHOUT = "`gateway check`, `test` and `explain` need none with --without-secrets"


class ReferenceValues:
    """Variables of an environment, and files relative to `folder`; or placeholders for all."""

    def __init__(
        self,
        environment: Mapping[str, str] | None,
        folder: Path,
        *,
        without_secrets: bool,
        may_lack: bool = False,
    ) -> None:
        """With `may_lack`, a declared secret without a value is left out, and is not a finding."""
        self.may_lack = may_lack
        self._without_secrets = without_secrets
        self._environment = os.environ if environment is None else environment
        self.folder = folder

    def find(self, found: re.Match[str]) -> str | None:
        """Return the value of a match of `REFERENCE`, or None when there is none."""
        if self._without_secrets:
            return placeholder_text(found)
        source, name = found.groups()
        return self._environment.get(name) if source == "env" else self._content(name)

    def has_placeholder(self, written: object) -> bool:
        """Return whether the value of a YAML node is text with a reference that stays unknown."""
        return self._without_secrets and isinstance(written, str) and has_reference(written)

    def hint(self, found: re.Match[str]) -> str:
        """Return what to do about a reference without a value."""
        if found[1] == "env":
            return f"set the variable before the gateway starts; {WITHOUT}"
        path = self.folder / found[2]
        try:
            _content(path)
        except UnicodeDecodeError:
            return f"the file {path} is not UTF-8"
        except ValueError as error:
            return f"the file {path} {error}"
        except FileNotFoundError:
            pass
        except OSError as error:
            return f"the file {path} cannot be read: {error.strerror}"
        return f"create or mount the file {path} before the gateway starts; {WITHOUT}"

    def _content(self, name: str) -> str | None:
        try:
            return _content(self.folder / name)
        except (OSError, ValueError):
            return None


def _content(path: Path) -> str:
    """Return the text of a file without its last line end; a pipe is never waited for.

    Raises:
        OSError: it cannot be read.
        ValueError: it is a pipe, too long, or not UTF-8.
    """
    at_once = int(getattr(os, "O_NONBLOCK", 0))  # Windows has none
    descriptor = os.open(path, os.O_RDONLY | at_once)
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise ValueError("is a pipe")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_SECRET + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_SECRET:
        raise ValueError(f"is longer than {MAX_SECRET} bytes")
    return data.decode().rstrip("\r\n")


def has_reference(text: str) -> bool:
    return REFERENCE.search(text) is not None


def placeholder_text(found: re.Match[str]) -> str:
    """Return a text in place of a reference, or the digits of a port behind a host of a URL.

    The text is legal as a host name, as a name and as a level of every system. It is as short as
    real values are, because the names of a route have limits.
    """
    number = crc32(found[0].encode("utf-8", "surrogatepass"))
    if _BEFORE_PORT.search(found.string[: found.start()]):
        return str(FIRST_PORT + number % PORTS)
    word = re.sub(r"[^A-Za-z0-9]+", "-", found[2]).strip("-")[:MAX_WORD]
    return f"{word}-{number:08x}"


def placeholder_setting(text: str, written: str, meta: Mapping[str, Any]) -> str:
    """Return a text with placeholders as a legal value of its setting, which is `written` so.

    A secret is long enough. A value that is one reference is a URL when the default of the setting
    is one: a URL with TLS, about which there are fewer findings.
    """
    if meta.get("secret"):
        return text.ljust(SECRET_LENGTH, "x")
    default = meta.get("default") if REFERENCE.fullmatch(written) else None
    first = default[0] if isinstance(default, tuple) and default else default
    scheme, mark, _ = str(first).partition("://")
    return f"{scheme}s{mark}{text}:{FIRST_PORT}" if mark else text


def placeholder_value(kind: object, meta: Mapping[str, Untyped]) -> Untyped:
    """Return a legal value of a setting that is not free text; None when it is."""
    if get_origin(kind) not in {None, Literal}:
        return None  # a list or an optional value: its inner type decides
    default = meta.get("default")
    choices = get_args(kind) if get_origin(kind) is Literal else meta.get("choices", ())
    if choices:
        return default if default in choices else choices[0]
    if kind is bool:
        return default is True
    if kind not in {int, float}:
        return None
    if isinstance(default, int | float):
        return default
    return kind(min(max(meta.get("minimum", 1), 1), meta.get("maximum", 1)))

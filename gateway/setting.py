"""Declaration of one configuration setting, and facts about the settings of a dataclass."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import (
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_origin,
    overload,
)

from gateway.untyped import Untyped

T = TypeVar("T")

# "state": made when absent; "file" and "folder": must exist; "jars": a file or a pattern of files.
PathKind: TypeAlias = Literal["", "state", "file", "folder", "jars"]
SettingUnit: TypeAlias = Literal["", "bytes", "seconds", "days", "messages a minute"]


class FileText(str):
    """The value of a setting that names a file, as it was when the configuration was read."""

    __slots__ = ("read",)
    read: Callable[[], str]  # returns the value of now; raises NotConnectedError without one


@overload
def current(text: str) -> str: ...


@overload
def current(text: None) -> None: ...


def current(text: str | None) -> str | None:
    """Return the value of a setting now: a file may have another one since the start.

    Raises:
        NotConnectedError: the file is absent or cannot be read.
    """
    return text.read() if isinstance(text, FileText) else text


class SettingFacts(TypedDict, total=False):
    """Facts that a setting may state beside its text and its default."""

    key: str  # the word in the file, when it is not the name of the field
    minimum: float
    maximum: float
    choices: tuple[object, ...]  # the legal values
    reread: bool  # a value with `${file:...}` is read again at each use, as every secret is
    secret: bool  # a file must hold a reference, and the value stays out of `repr` and findings
    path: PathKind  # relative to the folder of the file that contains it
    unit: SettingUnit  # of a number, which a file may write with another one: 64MiB, 1.5s
    instead: tuple[str, ...]  # keys that can stand in place of this one; one of all is needed
    filled: bool  # a list has an entry: an empty one would read as none, and mean the default
    shorthand: str  # the key of the mapping that a text in place of the mapping sets


@overload
def setting(doc: str, default: T, **facts: Unpack[SettingFacts]) -> T: ...


@overload
def setting(
    doc: str, *, default_factory: Callable[[], Any] = ..., **facts: Unpack[SettingFacts]
) -> Untyped: ...


def setting(
    doc: str,
    default: Any = MISSING,
    *,
    default_factory: Any = MISSING,
    **facts: Unpack[SettingFacts],
) -> Any:
    """Declare a field of a settings dataclass; without a default the setting is required.

    The loader, the JSON Schema and the tables in `docs` read these facts from `Field.metadata`.

    Args:
        doc: one sentence without a full stop, for the schema, the tables and "missing field".
        default: the value of an absent setting.
        default_factory: makes the value of an absent setting, where `default` would be mutable.
        facts: the other facts of the setting.
    """
    known: dict[str, Any] = {"repr": not facts.get("secret"), "metadata": {"doc": doc, **facts}}
    if default_factory is not MISSING:
        return field(default_factory=default_factory, **known)
    return field(default=default, **known)


def seconds(doc: str, default: T, **facts: Unpack[SettingFacts]) -> T:
    """Declare a setting that is a time."""
    facts["unit"] = "seconds"
    return setting(doc, default, **facts)


def timeout(doc: str, default: float) -> float:
    """Declare a setting that is a time for waiting, which is never zero."""
    return seconds(doc, default, minimum=0.1)


def size(doc: str, default: T, **facts: Unpack[SettingFacts]) -> T:
    """Declare a setting that is a number of bytes."""
    facts["unit"] = "bytes"
    return setting(doc, default, **facts)


def window_bytes(doc: str, default: int) -> int:
    """Declare a setting that bounds the bytes of messages on their way."""
    return size(doc, default, minimum=65_536)


def choice(doc: str, default: str, *others: str) -> str:
    """Declare a setting that is one of these words."""
    return setting(doc, default, choices=(default, *others))


def optional(doc: str, **facts: Unpack[SettingFacts]) -> Untyped:
    """Declare a setting whose default is None."""
    return setting(doc, None, **facts)


def file_path(doc: str) -> str | None:
    """Declare a setting that may name a file, which must exist."""
    return setting(doc, None, path="file")


def secret(doc: str) -> str | None:
    """Declare a setting that may be a secret: a file gives it by a reference."""
    return setting(doc, None, secret=True)


@cache
def fields_by_key(kind: type) -> dict[str, Field[Any]]:
    """Return the fields of a dataclass by their keys in a file, its own before inherited ones."""
    found = [field for field in fields(kind) if field.init]
    own = {name: position for position, name in enumerate(kind.__annotations__)}
    found.sort(key=lambda field: own.get(field.name, len(own)))
    return {field.metadata.get("key", field.name): field for field in found}


@cache
def type_hints(kind: type) -> dict[str, Any]:
    return {n: h for n, h in typing.get_type_hints(kind).items() if get_origin(h) is not ClassVar}


def is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def is_needed(field: Field[Any]) -> bool:
    """Return whether a file must have the setting, or the one that can stand in its place."""
    return is_required(field) or "instead" in field.metadata


def default_path(field: Field[Any]) -> str | None:
    """Return the default of a setting that is a path; None without one."""
    default: object = field.default
    return default if "path" in field.metadata and isinstance(default, str) else None

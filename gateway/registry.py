"""Rows by name: the gateway's own, and those that installed packages add by an entry point."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gateway.errors import GatewayError, first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GATEWAY = "gateway"  # the package of the gateway's own rows


class Row(Protocol):
    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Row)


class PluginWarning(UserWarning):
    """A package adds a row that the gateway cannot use."""


class Registry(Mapping[str, R]):
    """The rows of a kind.

    Rows of packages have the entry points of `group`, which bear the names of their rows. They are
    loaded at the first name that is not a row of the gateway's own, or when all rows are listed.
    One that cannot be used has a fault, which is also a warning; the others are there. `check`
    raises for a row that other parts of the gateway cannot read.
    Mutable: rows come and go.
    """

    def __init__(
        self, group: str, row: type[R], own: Iterable[R], check: Callable[[R], None]
    ) -> None:
        self._group, self._row, self._check = group, row, check
        self._rows = {each.name: each for each in own}
        self._packages: dict[str, str] = {}
        self._faults: dict[str, str] = {}
        self._is_loaded = False

    def __getitem__(self, name: str) -> R:
        if name not in self._rows:
            self._load()
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        own = [*self._rows]
        yield from own
        self._load()
        yield from [name for name in self._rows if name not in own]

    def __len__(self) -> int:
        self._load()
        return len(self._rows)

    def package_of(self, name: str) -> str:
        """Return the package that has added the row."""
        return self._packages.get(name, GATEWAY)

    def fault_of(self, name: str) -> str:
        """Return why no package can add this row, as a sentence; "" when none tries."""
        self._load()
        return self._faults.get(name, "")

    def register(self, row: R) -> None:
        """Add a row; parts of the gateway read the registry when they need it.

        Raises:
            GatewayError: the name is already registered.
        """
        if row.name in self:
            raise GatewayError(f"{row.name}: is already registered")
        self._rows[row.name] = row

    def unregister(self, name: str) -> None:
        """Remove a row that `register` added.

        Raises:
            KeyError: there is none.
        """
        del self._rows[name]

    def _load(self) -> None:
        if self._is_loaded:
            return
        from importlib.metadata import entry_points  # noqa: PLC0415  # most commands need none

        self._is_loaded = True
        for point in entry_points(group=self._group):
            package = point.dist.name if point.dist else point.value
            try:
                self._add(point, package)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # a fault only of its package
                reason = f"{type(error).__name__}: {first_line(error)}"
                self._faults[point.name] = (
                    f"package {package!r}: {self._group}: {point.name} = {point.value}: {reason};"
                    " repair the package, or remove it"
                )
        for fault in self._faults.values():
            warnings.warn(fault, PluginWarning, stacklevel=2)

    def _add(self, point: EntryPoint, package: str) -> None:
        row: Any = point.load()
        if not isinstance(row, self._row):
            raise TypeError(f"is no {self._row.__name__}")
        if row.name != point.name:
            raise ValueError(f"the entry point has the row of {row.name!r}")
        if row.name in self._rows:
            raise ValueError(f"{self.package_of(row.name)!r} has a row of this name")
        self._check(row)
        self._rows[row.name] = row
        self._packages[row.name] = package

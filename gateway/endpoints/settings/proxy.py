"""Settings of a proxy between an endpoint and its broker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.endpoints.settings.base import U16, SettingFault
from gateway.setting import secret, setting

MAX_SOCKS_TEXT: Final = 255  # bytes of a name and of a password (RFC 1929, 2)
_URL: Final = re.compile(
    r"(?P<scheme>http|socks5)://(?P<host>\[[^\]@/\s]+\]|[^:@/?#\s\[\]]+):(?P<port>[0-9]{1,5})/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """Proxy that makes the connection to the broker; it looks up the broker's name."""

    url: str = setting(
        "address of the proxy: `http://HOST:PORT`, which is asked by CONNECT, or"
        " `socks5://HOST:PORT`; variables such as `https_proxy` have no effect"
    )
    username: str | None = secret("user name at the proxy")
    password: str | None = secret("password at the proxy")

    @property
    def scheme(self) -> str:
        return self._part("scheme")

    @property
    def host(self) -> str:
        return self._part("host").strip("[]")

    @property
    def port(self) -> int:
        return int(self._part("port"))

    @property
    def address(self) -> str:
        """The URL without what stands behind the port."""
        return self.url.rstrip("/")

    def faults(self) -> Iterator[SettingFault]:
        """Yield what makes every connection through the proxy fail."""
        found = _URL.fullmatch(self.url)
        if "@" in self.url:
            hint = "write `username` and `password` as keys of their own"
            yield SettingFault("proxy", "`url` has a user name or a password", hint)
        elif found is None or not 0 < int(found["port"]) <= U16:
            hint = "write http://HOST:PORT or socks5://HOST:PORT"
            yield SettingFault("proxy", f"{self.url!r} is no address of a proxy", hint)
        elif (self.username is None) != (self.password is None):
            hint = "write both `username` and `password`, or none of them"
            yield SettingFault("proxy", "a user name needs a password", hint)

    def _part(self, name: str) -> str:
        found = _URL.fullmatch(self.url)
        return found[name] if found else ""

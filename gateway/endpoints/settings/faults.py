"""Faults of settings that only a connection would show: an address, a class path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import ADDRESS_SETTERS, JmsSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/\s]|\()[^\s]*")  # or failover:(...)
_YAMI4: Final = re.compile(r"tcps?://[^/\s]+:[0-9]+|unix:///[^\s]+")
_HOST: Final = r"(\[[^\]\s]+\]|[^/:\[\]\s]+)(:[0-9]+)?"
_SOLACE: Final = re.compile(rf"(tcps?:(//)?)?{_HOST}|(https?|wss?)://{_HOST}(/[^\s]*)?")


class SettingFault(NamedTuple):
    """A setting that makes every connection fail: its key, the reason, and what to do."""

    key: str
    reason: str
    hint: str
    position: int | None = None  # in a list


def setting_faults(settings: EndpointSettings) -> Iterator[SettingFault]:
    """Yield the faults of an endpoint's settings."""
    match settings:
        case MqttSettings(host=host) if not host or "/" in host:
            hint = "write the name or IP address alone; `port` and `tls` have keys of their own"
            yield SettingFault("host", f"{host!r} is no host name", hint)
        case SolaceSettings(url=url):
            yield from _addresses("url", url.split(","), _SOLACE, "tcp://host:port or tcps://...")
        case Yami4Settings(url=url):
            form = "tcp://host:port, tcps://host:port or unix:///path"
            yield from _addresses("url", [url], _YAMI4, form)
        case JmsSettings():
            yield from _jms_faults(settings)
        case _:
            return


def _jms_faults(settings: JmsSettings) -> Iterator[SettingFault]:
    if not settings.classpath:
        hint = "name the jars of the client library, such as /opt/tibco/ems/*/lib/*.jar"
        yield SettingFault("classpath", "it names no jar", hint)
    names = {each.partition("=")[0].strip().lower() for each in settings.properties}
    if settings.jndi_factory or names & ADDRESS_SETTERS:
        return  # `urls` are not used, or have the form of the name service
    if not settings.urls:
        yield SettingFault("urls", "it names no server", "write tcp://host:port or ssl://...")
    for position, text in enumerate(settings.urls):
        form = "tcp://host:port or ssl://host:port"
        for fault in _addresses("urls", _split(text), _ADDRESS, form):
            yield fault._replace(position=position)


def _split(text: str) -> list[str]:
    """Return the servers of an EMS list; a composite address of ActiveMQ stays whole."""
    return [text] if "(" in text else text.split(",")


def _addresses(
    key: str, texts: list[str], form: re.Pattern[str], shown: str
) -> Iterator[SettingFault]:
    for text in texts:
        if form.fullmatch(text.strip()) is None:
            yield SettingFault(key, f"{text!r} is no address", f"write {shown}")

"""The mapping that `gateway init` writes: routes between two endpoints, and a test of each."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address
from itertools import chain, count
from textwrap import indent
from typing import Final, NamedTuple

import yaml

from gateway.config.process import DEFAULT_URL
from gateway.config.references import REFERENCE
from gateway.dialects.base import parse_subject
from gateway.dialects.dialect import Dialect
from gateway.dialects.parts import BOUNDARY
from gateway.dialects.registry import find_dialect
from gateway.endpoints.registry import starters
from gateway.errors import GatewayError
from gateway.model.subject import Subject
from gateway.routing.source_pattern import parse_source
from gateway.translate.names import Renderer
from gateway.translate.subscriptions import translate_pattern

SCHEMA_FILE: Final = "gateway.schema.json"
MAX_ROUTE_NAME: Final = 40  # characters
_CAPTURE: Final = re.compile(r"\{(\w+)(\.\.\.)?\}")
_STAND_IN: Final = "0capture0"  # for a capture, in a name: no system has a rule about it
MAX_PORT: Final = 65_535
_ADDRESS: Final = re.compile(
    r"(?:(?P<host>[\w.-]+)|\[(?P<ip6>[0-9A-Fa-f:.]+)\]):(?P<port>[0-9]{1,5})"
)
_TEXT: Final = """\
# yaml-language-server: $schema={schema}
# Made by `gateway init`: messages from {source} to {target}.
#
#   gateway check {file}    lists every error and warning, and opens no connection
#   gateway test {file}     runs the tests at the end of this file
#   gateway run {file}      runs it until Ctrl-C

gateway: {{name: {gateway}}}  # unique among your gateways: it is in every archive row
archive: {{path: archive}}  # a row of each message and copy, for `gateway reconcile archive`
spool: {{path: spool}}  # copies for a broker that is away, and dead letters
web: {{}}  # the page, at {page}; `gateway status` asks it

endpoints:
  source:
{source_settings}
  target:
{target_settings}
routes:
{routes}
tests:
{tests}"""
_ROUTE: Final = """  {route}:
    from:
      endpoint: source
      # {{name}} captures one level, {{name...}} all levels that remain.
      pattern: {pattern}
    to:
      endpoint: target
      template: {template}
      on_too_long: refuse  # a name beyond the target's limits becomes a dead letter
    # direction: both  # would carry the messages of the target to the source, too
{keyless}"""
_KEYLESS: Final = """\
  # Messages without a key need a route of their own. Remove `# | ` in these lines:
  # | {route}-no-key:
  # |   from: {{endpoint: source, pattern: {pattern}, exclude: [{keyed}]}}
  # |   to: {{endpoint: target, template: {template}, on_too_long: refuse}}
"""
_TEST: Final = """  {title}:
    given: {{endpoint: source, name: {given}}}
    expect: [{{endpoint: target, name: {expected}}}]
"""


class FirstMapping(NamedTuple):
    """The text of a mapping, and what its target needs beyond it; empty for nothing.

    `has_keyless`: it has comments with routes for messages without a key.
    """

    text: str
    needs: str
    has_keyless: bool


class Names(NamedTuple):
    """The names of one route: a pattern of the source, and a template of the target."""

    pattern: str
    template: str


def mapping_text(
    source: str, target: str, names: Sequence[Names], addresses: tuple[str, str], file: str
) -> FirstMapping:
    """Return a mapping from one system to another, with a route for each of `names`.

    An address is HOST:PORT, or empty.

    Raises:
        GatewayError: an address is none, or the names are none of the source or the target.
    """
    gateway = f"{source}-to-{target}"
    routes = _route_names([each.pattern for each in names])
    shared = {"gateway": gateway, "route": routes[0] if len(routes) == 1 else gateway}
    ends = {"source": (source, addresses[0]), "target": (target, addresses[1])}
    patterns = [each.pattern for each in names]
    known = starters()
    has_one_port = known[source][1].port == known[target][1].port
    fields = {
        name: shared
        | _address(name, system, address, second=name == "target" and has_one_port)
        | _patterns(patterns, source, system)
        for name, (system, address) in ends.items()
    }
    needs = starters()[target][1].needs.format(**fields["target"])
    keyless = [_keyless(*each, source, target) for each in zip(routes, names, strict=True)]
    text = _TEXT.format(
        page=DEFAULT_URL,
        schema=SCHEMA_FILE,
        file=file,
        source=source,
        target=target,
        gateway=gateway,
        source_settings=_settings(source, fields["source"]),
        target_settings=_settings(target, fields["target"], is_target=True),
        routes="".join(map(_route, routes, names, keyless)),
        tests="".join(map(_test, _titles(routes), names)),
    )
    return FirstMapping(text, needs, any(keyless))


def _route(name: str, names: Names, keyless: str) -> str:
    pattern, template = json.dumps(names.pattern), json.dumps(names.template)
    return _ROUTE.format(route=name, pattern=pattern, template=template, keyless=keyless)


def _keyless(name: str, names: Names, source: str, target: str) -> str:
    """Return a comment with the route of messages without a key, if the pattern has one."""
    dialect = find_dialect(starters()[source][1].dialect)
    topic, boundary, _ = names.pattern.partition(BOUNDARY)
    if dialect.key is None or not boundary:
        return ""
    plain = parse_source(topic, dialect).subscription
    keyed = json.dumps(f"{plain}{BOUNDARY}{dialect.any_many}")
    template = json.dumps(_template(topic, dialect, find_dialect(starters()[target][1].dialect)))
    return _KEYLESS.format(route=name, pattern=json.dumps(topic), keyed=keyed, template=template)


def _test(title: str, names: Names) -> str:
    given, expected = (json.dumps(_CAPTURE.sub("1", each)) for each in names)
    return _TEST.format(title=title, given=given, expected=expected)


def _titles(routes: Sequence[str]) -> list[str]:
    if len(routes) == 1:
        return ["a name crosses"]
    return [f"a name of {each} crosses" for each in routes]


def names_of(names: str, *systems: str) -> Names:
    """Return the pattern, and the template with the same levels in the target's spelling.

    `names` are one level, or a pattern of the source's system.

    Raises:
        GatewayError: the names are none of the source, or none that the target can have.
    """
    known = starters()
    source, target = (find_dialect(known[each][1].dialect) for each in systems)
    names = names.removesuffix(source.separator)
    if not _CAPTURE.search(names):
        names += rest_of(source)
    try:
        parse_source(names, source)
        template = _template(names, source, target)
    except GatewayError as error:
        raise GatewayError(f"init: {error}; write other names") from error
    return Names(names, template)


def _template(names: str, source: Dialect, target: Dialect) -> str:
    """Return a pattern as a template, with the same levels in the spelling of `target`.

    Raises:
        GatewayError: the target cannot have such names.
    """
    levels = parse_subject(_CAPTURE.sub(_STAND_IN, names), source).levels
    if source.key is None and target.key is not None:
        levels = _with_key(levels)
    elif source.key is not None and target.key is None:
        levels = tuple(each for each in levels if each != BOUNDARY)
    made = Renderer(target).render(Subject(levels))
    first, *parts = made.split(_STAND_IN)
    captures = [each[0] for each in _CAPTURE.finditer(names)]
    return first + "".join(map(str.__add__, captures, parts))


def _with_key(levels: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name with a key, which begins at the level of the last capture."""
    begin = max(1, *(at for at, each in enumerate(levels) if _STAND_IN in each))
    if BOUNDARY in levels or begin == len(levels):
        return levels
    return (*levels[:begin], BOUNDARY, *levels[begin:])


def rest_of(dialect: Dialect) -> str:
    """Return what follows a first level so that all names below it are captured."""
    return f"{dialect.separator if dialect.key is None else BOUNDARY}{{rest...}}"


def _settings(system: str, fields: Mapping[str, str], *, is_target: bool = False) -> str:
    """Return the settings of an endpoint, here indented."""
    kind, starter = starters()[system]
    lines = f"kind: {kind.name}\n{starter.settings}{starter.target if is_target else ''}"
    return indent(lines.format(**fields), "    ")


def _address(name: str, system: str, address: str, *, second: bool) -> dict[str, str]:
    """Return the fields of a name and an address; the `second` broker of this machine."""
    address = address or f"localhost:{starters()[system][1].port + second}"
    found = _ADDRESS.fullmatch(address)
    if found is None or not _is_host(found) or not 0 < int(found["port"]) <= MAX_PORT:
        form = "write HOST:PORT, such as broker.plant:1883 or [::1]:1883"
        raise GatewayError(f"{address!r} is no address; {form}")
    host = found["host"] or found["ip6"]
    return {
        "host": host,
        "port": found["port"],
        "address": address,
        "name": name,
        "variable": name.upper(),
    }


def _patterns(patterns: Sequence[str], source: str, system: str) -> dict[str, str]:
    """Return the fields of the subscriptions of `system` that select the names of the source."""
    known = starters()
    there, here = (find_dialect(known[each][1].dialect) for each in (source, system))
    try:
        texts = [
            text
            for each in patterns
            for text in translate_pattern(
                parse_source(each, there).subscription, there, here
            ).patterns
        ]
    except GatewayError as error:
        raise GatewayError(f"init: {error}; write other names") from error
    if there.key is not None and here.key is None:  # as in the template
        texts = [_without_boundary(each, here.separator) for each in texts]
    return {"patterns": json.dumps(texts), "keys": " and ".join(texts)}


def _without_boundary(text: str, separator: str) -> str:
    return separator.join(each for each in text.split(separator) if each != BOUNDARY)


def _is_host(found: re.Match[str]) -> bool:
    try:
        return bool(found["host"] or IPv6Address(found["ip6"]))
    except ValueError:
        return False


def _route_names(patterns: Sequence[str]) -> list[str]:
    """Return a name for each pattern; a number tells those of equal letters apart."""
    found: list[str] = []
    for each in patterns:
        word = _route_name(each)
        more = (f"{word}-{number}" for number in count(2))
        found.append(next(name for name in chain([word], more) if name not in found))
    return found


def _route_name(pattern: str) -> str:
    word = re.sub(r"[^A-Za-z0-9]+", "-", _CAPTURE.sub("", pattern))
    return word.strip("-")[:MAX_ROUTE_NAME] or "all"


_LOADER: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def unset_variables(text: str) -> str:
    """Return the variables that a YAML text refers to, and that are not set, such as "A and B".

    Comments do not count. The result is empty when there is none.
    """
    tokens = yaml.scan(text, Loader=_LOADER)
    values = (token.value for token in tokens if isinstance(token, yaml.ScalarToken))
    references = chain.from_iterable(map(REFERENCE.findall, values))
    named = {name for source, name in references if source == "env"}
    *first, last = sorted(named - os.environ.keys()) or [""]
    return f"{', '.join(first)} and {last}" if first else last

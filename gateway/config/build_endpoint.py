"""Endpoints of a configuration, and their look-up by the routes that name them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xxhash import xxh3_64_hexdigest

from gateway.config.hints import did_you_mean
from gateway.config.name_parts import check_long_names
from gateway.config.nodes import KeyPath
from gateway.config.place import Place
from gateway.config.schema import CommonEndpointSettings, NameLimitSettings
from gateway.config.section_checks import is_loopback
from gateway.dialects.base import Dialect
from gateway.dialects.brokers import BROKERS, with_limits
from gateway.dialects.products import dialect_hint
from gateway.dialects.registry import DIALECTS
from gateway.endpoints.broker_names import PLACEHOLDER
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import GatewayError, SubjectError
from gateway.routing.origin_path import NO_BROKER, BrokerName
from gateway.routing.other_separator import corrected
from gateway.routing.route import BrokerAccess, Route, WhenFull
from gateway.routing.source_pattern import SourcePattern, parse_source
from gateway.translate.names import OnTooLong, OnUnmappable
from gateway.translate.shorten import ShortNamesInMemory


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint of a configuration; `dialect` includes its own limits.

    `allow`, `on_unmappable` and `on_too_long` are for its targets.
    """

    settings: EndpointSettings
    dialect: Dialect
    allow: tuple[SourcePattern, ...]
    on_unmappable: OnUnmappable
    on_too_long: OnTooLong
    echo_window: float = 0.0  # seconds
    broker: BrokerName = NO_BROKER
    was: str = ""  # an earlier name of it

    def access(self, *, ids: bool = True) -> BrokerAccess:
        """Return how other gateways meet the messages of this endpoint; `ids`: they have ids."""
        settings = self.settings
        hosts = [each.host for each in settings.servers()]
        elsewhere = hosts and not any(map(is_loopback, hosts))
        broker = ""
        name = self.broker.given or self.broker.address
        if self.broker.given or elsewhere:
            alike = (name, self.dialect.name, settings.default_kind)
            broker = xxh3_64_hexdigest("\0".join(alike).encode(errors="surrogatepass"))
        return BrokerAccess(broker, self.broker.given, ids and "properties" in settings.carries)

    def source_access(self, route: Route) -> BrokerAccess:
        """Return the access of the source of `route`, which is at this endpoint."""
        filtered = bool(route.selector or self.settings.selector or route.names_of)
        filtered |= not route.take_retained
        group = route.source.share or self.settings.group(route.source.subscription)
        return replace(self.access(), group=group, filtered=filtered)


@dataclass(frozen=True, slots=True)
class RouteContext:
    """Valid endpoints of a configuration, and facts shared by all routes.

    `endpoint_names` includes endpoints with findings: a route that names one of them is not
    reported. `route_names` are those of all routes, also with findings; `built` has the routes that
    are built, so that others can take their names. The names are incomplete when a file or the
    section `endpoints` could not be read.
    """

    endpoints: Mapping[str, Endpoint]
    endpoint_names: Collection[str]
    dictionary: ShortNamesInMemory
    when_full: WhenFull = WhenFull.SLOW
    names_complete: bool = True
    route_names: Collection[str] = ()
    built: dict[str, Sequence[Route]] = field(default_factory=dict)

    def find(self, name: str, place: Place) -> Endpoint | None:
        """Return the endpoint, or None when it has findings; report an unknown name."""
        if self.names_complete and name not in self.endpoint_names:
            hint = did_you_mean(name, self.endpoint_names)
            place.report("unknown-endpoint", f"unknown endpoint {name!r}", hint)
        return self.endpoints.get(name)


def make_endpoint(
    settings: EndpointSettings, common: CommonEndpointSettings, place: Place
) -> Endpoint | None:
    """Return the endpoint, or None when its dialect is unknown."""
    if settings.dialect not in DIALECTS:
        name = settings.dialect
        hint = DIALECTS.fault_of(name) or dialect_hint(name) or did_you_mean(name, DIALECTS)
        reason = f"unknown dialect {name!r}"
        place["dialect"].report("unknown-dialect", reason, hint)
        return None
    first, *others = map(DIALECTS.__getitem__, settings.dialects)
    if (common.broker_id or "").startswith(f"{PLACEHOLDER}/"):
        reason = f"`broker_id` {common.broker_id!r}: {PLACEHOLDER} is a placeholder"
        place["broker_id"].report("setting", reason, "write a name of this site in its place")
    whole = first.joined_with(others).with_kinds(settings.kind_prefixes)
    dialect = _limited(whole, common.limits, place["limits"])
    if dialect is None:
        return None
    check_long_names(common.on_too_long, dialect, place["on_too_long"])
    return Endpoint(
        settings,
        dialect,
        parse_patterns(common.allow, dialect, place["allow"]),
        OnUnmappable(common.on_unmappable),
        OnTooLong(common.on_too_long),
        common.echo_window,
        BrokerName(common.broker_id or "", settings.broker_key, settings.name_space),
        common.was or "",
    )


def setting_faults(name: str, settings: EndpointSettings) -> Iterator[tuple[KeyPath, str, str]]:
    """Yield key, reason and hint for each setting that makes every connection fail."""
    for fault in settings.faults():
        at: KeyPath = ("endpoints", name, fault.key)
        if fault.position is not None:
            at = (*at, fault.position)
        yield at, f"endpoint {name!r}: `{fault.key}`: {fault.reason}", fault.hint


def _limited(dialect: Dialect, settings: NameLimitSettings, place: Place) -> Dialect | None:
    """Return the dialect with the limits of an endpoint; None with a finding."""
    known = None if settings.broker is None else BROKERS[settings.broker]
    if known is not None and known.dialect != dialect.name:
        reason = (
            f"{known.name} is a broker of {known.dialect}, and the endpoint's is {dialect.name}"
        )
        place["broker"].report("limits", reason, "write the limits in figures")
        return None
    limits = settings.all_limits()
    try:
        return with_limits(dialect, limits)
    except SubjectError as error:
        index = limits.forbidden_patterns.index(error.text)
        place["forbidden_patterns"][index].report(error.rule, str(error))
    except GatewayError as error:
        place.report("limits", str(error))
    return None


def parse_patterns(
    texts: Collection[str], dialect: Dialect, place: Place
) -> tuple[SourcePattern, ...]:
    """Parse a list of patterns; illegal ones are reported and left out."""
    parsed = [parse_pattern_at(text, dialect, place[index]) for index, text in enumerate(texts)]
    return tuple(each for each in parsed if each is not None)


def parse_pattern_at(text: str, dialect: Dialect, place: Place) -> SourcePattern | None:
    """Parse the pattern at `place`; None when it is illegal, which is reported."""
    return place.parse(parse_source, text, dialect, hint=separator_hint(text, dialect))


def separator_hint(text: str, dialect: Dialect) -> str:
    """Return the hint for an illegal text that another system would spell so; "" without one."""
    better = corrected(text, dialect)
    return better and f"the separator of {dialect.name} is {dialect.separator!r}: write {better!r}"

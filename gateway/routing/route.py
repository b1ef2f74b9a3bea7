"""One rule of the bridge as frozen values: which names it takes, and what each becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from gateway.dialects.base import Dialect, parse_subject
from gateway.errors import TranslationError
from gateway.model.subject import Subject
from gateway.routing.captures import SourcePattern
from gateway.routing.headers import NO_RULES, HeaderRules
from gateway.routing.payload import Conversion
from gateway.routing.selectors.selector import Selector
from gateway.routing.tags import TagRule, tag_list
from gateway.routing.template import Template
from gateway.translate.names import Renderer

EACH_TAG = TagRule()


class WhenFull(Enum):
    """What happens to one message more when the spool of its target is full."""

    SLOW = "slow"  # the source waits
    OLDEST = "dead-letter-oldest"
    NEWEST = "dead-letter-newest"


@dataclass(frozen=True)
class Target:
    """One destination of a route; `template` None keeps the name and only spells it anew."""

    label: str  # unique in its route: the endpoint's name, numbered when it comes twice
    endpoint: str
    renderer: Renderer
    template: Template | None = None
    allow: tuple[SourcePattern, ...] = ()  # names outside are refused; all are allowed when empty
    also: tuple[Template, ...] = ()  # further tags, where the target has tag lists
    rules: HeaderRules = NO_RULES
    conversion: Conversion | None = None
    lossy: bool = False  # different names may become one here, and that is meant
    when_full: WhenFull = WhenFull.SLOW
    identify: bool = False  # each copy carries the id of its message in a property
    place: str = ""  # what all gateways call its broker
    observe: str = ""  # a subscription there, to see what arrives

    @property
    def system(self) -> str:
        return self.renderer.dialect.name

    def name_for(self, subject: Subject, captures: Mapping[str, tuple[str, ...]]) -> str:
        """What `subject` is called at this target.

        Raises:
            TranslationError: the target cannot spell it; LimitError: it is too long or too deep.
        """
        if self.template is None:
            return self._spell(subject)
        if not self.also:
            return self._spell(self.template.expand(captures))
        every = (self.template, *self.also)
        return tag_list(self._spell(template.expand(captures)) for template in every)

    def _spell(self, subject: Subject) -> str:
        name = self.renderer.render(subject)
        if self.allow and not any(pattern.selects(subject.levels) for pattern in self.allow):
            reason = "is outside of what the endpoint allows"
            raise TranslationError(self.system, name, "not-allowed", reason)
        return name

    def reply_name(self, dialect: Dialect, name: str) -> str:
        """A reply address of the source's `dialect` as this target's system spells it.

        Raises:
            SubjectError: it is no legal name at the source; TranslationError: none here.
        """
        return replace(self.renderer, replies=True).render(parse_subject(name, dialect))


@dataclass(frozen=True)
class Route:
    """A source pattern at an endpoint, its exclusions, and its targets in order."""

    name: str
    endpoint: str
    dialect: Dialect
    source: SourcePattern
    targets: tuple[Target, ...]
    excludes: tuple[SourcePattern, ...] = ()
    tags: TagRule = EACH_TAG
    selector: Selector | None = None
    inverse: str = ""  # name of the route that is its way back
    take_retained: bool = True
    drop_duplicates: bool = True  # a message seen before, by the identity its source gives it
    heartbeat: str = ""  # a name at the source, to send signs of life to
    place: str = ""  # what all gateways call the broker of its source
    archive_payload: bool = False
    archive_payload_bytes: int | None = None  # of each, the rest is cut
    archive_redact: tuple[str, ...] = ()  # header fields and properties whose values are not kept

    def has_carried(self, mark: str, origin: tuple[str, ...]) -> bool:
        """Whether a message that passed `origin` would go in a circle here.

        It does when this route has carried it before, or its way back has just now. Entries are
        `gateway/route`; `mark` is the gateway.
        """
        if not origin:
            return False
        return f"{mark}/{self.name}" in origin or origin[-1] == f"{mark}/{self.inverse}"

    def takes(self, levels: tuple[str, ...]) -> bool:
        return self.source.selects(levels) and not any(x.selects(levels) for x in self.excludes)

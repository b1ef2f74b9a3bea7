"""The exception classes of the gateway.

A class builds its text from the facts that the caller passes. Code decides by class and
attribute, never by the text. A text reads `where: what is wrong; what to do`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from gateway.model.dead_letter_rule import DeadLetterRule

MAX_QUOTED = 120  # characters of the user's text in an error message


def quoted(text: str) -> str:
    """Quote `text` for an error message; a text longer than `MAX_QUOTED` is cut."""
    if len(text) <= MAX_QUOTED:
        return repr(text)
    return f"{text[:MAX_QUOTED]!r}... ({len(text)} characters)"


def nearest(word: str, known: Collection[str], *, cutoff: float = 0.6) -> str:
    """A hint for an unknown word: the known one that resembles it, or all of them."""
    close = get_close_matches(word, known, n=1, cutoff=cutoff)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"


def first_line(error: BaseException) -> str:
    """The first line of the text of `error`; the name of its class when the text is empty."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


class GatewayError(Exception):
    """Base class of all errors; `retryable` says whether the same call may succeed later.

    `ours`: the gateway ended the connection itself, so that no message broke it.
    """

    retryable = False
    ours = False


class SubjectError(GatewayError):
    """A text is not a legal subject, pattern or tag list of its dialect.

    `offset` counts characters from 0; `rule` is the short name for scripts.
    """

    def __init__(self, dialect: str, text: str, offset: int, rule: str, reason: str) -> None:
        super().__init__(f"{dialect}: {quoted(text)} at {offset}: {reason}")
        self.dialect, self.text, self.offset = dialect, text, offset
        self.rule, self.reason = rule, reason


class IllegalNameError(SubjectError):
    """A received name is not legal in its system, or never leaves it; `rule` is of dead letters."""

    rule: DeadLetterRule

    def __init__(
        self, dialect: str, text: str, offset: int, rule: DeadLetterRule, reason: str
    ) -> None:
        super().__init__(dialect, text, offset, rule, reason)
        self.rule = rule


class TranslationError(GatewayError):
    """A value is legal at the source and has no form at the target; `rule` is the broken rule."""

    def __init__(self, target: str, text: str, rule: DeadLetterRule, reason: str) -> None:
        super().__init__(f"{target}: {quoted(text)}: {reason}")
        self.target, self.text, self.rule, self.reason = target, text, rule, reason


class LimitError(TranslationError):
    """A rendered value exceeds a limit of the target; `unit` is the unit of both figures."""

    def __init__(  # the facts of one refusal
        self, target: str, text: str, rule: DeadLetterRule, unit: str, actual: int, maximum: int
    ) -> None:
        super().__init__(target, text, rule, f"is {actual} {unit}, limit {maximum}")
        self.unit, self.actual, self.maximum = unit, actual, maximum


class SearchBudgetExceeded(GatewayError):  # noqa: N818  # no fault of the input: a bound
    """A search stopped at its limit without an answer; `unit` is the unit of both figures."""

    def __init__(  # the facts of one search
        self, search: str, question: str, unit: str, actual: int, maximum: int
    ) -> None:
        super().__init__(f"{search}: {quoted(question)}: is {actual} {unit}, limit {maximum}")
        self.search, self.question = search, question
        self.unit, self.actual, self.maximum = unit, actual, maximum


class WireError(GatewayError):
    """The peer violated its protocol."""


class ArchiveError(GatewayError):
    """The archive cannot be written or read; the text names the file."""


class SpoolError(GatewayError):
    """The directory of the spool and the dead letters cannot be used; the text names it."""


class WebError(GatewayError):
    """The web page cannot be served or fetched; the text names the address."""


class NoAnswerError(WebError):
    """No gateway answers at the address; it may be about to start."""

    retryable = True


class TracingError(GatewayError):
    """Tracing cannot be set up as configured; the text names the file."""


class ReconcileError(GatewayError):
    """The reconciliation cannot run with these arguments or this archive."""


@dataclass(frozen=True, slots=True)
class FindingExample:
    """A name that illustrates a finding, in the spelling of the endpoint's system."""

    name: str
    endpoint: str
    system: str


class ConfigError(GatewayError):
    """A finding at a place in a configuration file; `line` and `column` count from 1."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts of one finding
        self,
        path: str,
        line: int,
        column: int,
        rule: str,
        reason: str,
        hint: str = "",
        severity: str = "error",
        examples: tuple[FindingExample, ...] = (),
    ) -> None:
        tail = f"; {hint}" if hint else ""
        mark = "" if severity == "error" else f"{severity}: "
        super().__init__(f"{path}:{line}:{column}: {mark}{reason}{tail}")
        self.path, self.line, self.column = path, line, column
        self.rule, self.reason, self.hint = rule, reason, hint
        self.severity = severity  # error, warning or note
        self.examples = examples


class ConfigErrors(GatewayError):  # noqa: N818  # one error with many findings
    """All findings of a configuration, in file order."""

    def __init__(self, findings: list[ConfigError]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = findings


class EndpointError(GatewayError):
    """A messaging system refused a request, or its driver failed permanently."""


class NotConnectedError(EndpointError):
    """The connection to the broker is lost; reconnect and repeat the call."""

    retryable = True


class LeaseNotHeldError(NotConnectedError):
    """Another instance of the pair may hold the lease: nothing is opened or handed over here."""

    ours = True

    def __init__(self, instance: str) -> None:
        super().__init__(f"{instance} does not hold the lease of its pair")


def unexpected_error(endpoint: str, error: Exception) -> NotConnectedError:
    """The lost connection of `endpoint` after an unexpected error, such as a driver's fault."""
    return NotConnectedError(f"{endpoint}: {type(error).__name__}: {error}")


class LeftError(NotConnectedError):
    """The endpoint left its broker for another address; everything received or sent is settled."""

    ours = True


class ClosedByBrokerError(NotConnectedError):
    """The broker closed the connection and gave no reason."""


class ClientIdDisputeError(ClosedByBrokerError):
    """The broker closed one short connection after the other, as for two clients of one id.

    `proven`: another connection to the broker outlived it, so that no network closed it.
    """

    def __init__(self, text: str, *, proven: bool = False) -> None:
        super().__init__(text)
        self.proven = proven


class TakenOverError(EndpointError):
    """Another client uses the client id of this one."""


class SubscriptionRefusedError(EndpointError):
    """The broker refuses a subscription."""


class DriverMissingError(EndpointError):
    """An optional driver is not installed; the text names the extra."""

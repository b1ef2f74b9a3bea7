"""Every exception class of the gateway; imports nothing from the package.

A class builds its text from facts, callers pass the facts. Code decides by class and attribute,
never by the text. Texts read `where: what is wrong; what to do`.
"""

from __future__ import annotations

from dataclasses import dataclass

SHOWN = 120  # characters of the user's text that an error repeats


def shown(text: str) -> str:
    """`text` quoted for an error message, cut when it is long."""
    if len(text) <= SHOWN:
        return repr(text)
    return f"{text[:SHOWN]!r}... ({len(text)} characters)"


class GatewayError(Exception):
    """The root; `retryable` says whether the same call may succeed later."""

    retryable = False


class SubjectError(GatewayError):
    """Text is not a legal subject, pattern or tag list of its dialect.

    `offset` counts characters from 0; `rule` is the short name scripts decide by.
    """

    def __init__(self, dialect: str, text: str, offset: int, rule: str, reason: str) -> None:
        super().__init__(f"{dialect}: {shown(text)} at {offset}: {reason}")
        self.dialect, self.text, self.offset = dialect, text, offset
        self.rule, self.reason = rule, reason


class TranslationError(GatewayError):
    """Legal at the source, not sayable at the target; `rule` is the target's rule it breaks."""

    def __init__(self, target: str, text: str, rule: str, reason: str) -> None:
        super().__init__(f"{target}: {shown(text)}: {reason}")
        self.target, self.text, self.rule, self.reason = target, text, rule, reason


class LimitError(TranslationError):
    """Rendered, but past a limit of the target; `actual` and `maximum` count in `unit`."""

    def __init__(  # noqa: PLR0913, PLR0917  # the facts of one refusal
        self, target: str, text: str, rule: str, unit: str, actual: int, maximum: int
    ) -> None:
        super().__init__(target, text, rule, f"is {actual} {unit}, limit {maximum}")
        self.unit, self.actual, self.maximum = unit, actual, maximum


class WireError(GatewayError):
    """The peer broke its protocol."""


class ArchiveError(GatewayError):
    """The archive cannot be written or read; the text names the file."""


class SpoolError(GatewayError):
    """The folder of spool and dead letters cannot be used; the text names it."""


class WebError(GatewayError):
    """The page cannot be served, or not be asked; the text names the address."""


class TracingError(GatewayError):
    """Traces cannot be made as asked; the text names the file."""


class ReconcileError(GatewayError):
    """The reconciliation cannot run as asked."""


@dataclass(frozen=True, slots=True)
class Example:
    """A name that shows what a finding says, as the system of the endpoint spells it."""

    name: str
    endpoint: str
    system: str


class ConfigError(GatewayError):
    """A configuration file is wrong at a known place; `line` and `column` count from 1."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts of one finding
        self,
        path: str,
        line: int,
        column: int,
        rule: str,
        reason: str,
        hint: str = "",
        severity: str = "error",
        examples: tuple[Example, ...] = (),
    ) -> None:
        tail = f"; {hint}" if hint else ""
        mark = "" if severity == "error" else f"{severity}: "
        super().__init__(f"{path}:{line}:{column}: {mark}{reason}{tail}")
        self.path, self.line, self.column = path, line, column
        self.rule, self.reason, self.hint = rule, reason, hint
        self.severity = severity  # error, warning or note
        self.examples = examples


class ConfigErrors(GatewayError):  # noqa: N818  # many, where the other is one
    """All findings of a configuration, in file order."""

    def __init__(self, findings: list[ConfigError]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = findings


class EndpointError(GatewayError):
    """A messaging system refused, or its driver failed for good."""


class NotConnectedError(EndpointError):
    """The broker is away; open again and repeat."""

    retryable = True


class SendRejectedError(EndpointError):
    """The broker refused a message for itself; it becomes a dead letter."""


class DriverMissingError(EndpointError):
    """An optional driver is not installed; the text names the extra."""

"""One request about names and its answer, as JSON has them; it never raises for a bad one.

Requests and answers are those of `gateway names`, see `docs/names.md`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from gateway.dialects.advice import warnings_of
from gateway.dialects.dialect import Dialect
from gateway.dialects.names import check_name
from gateway.dialects.patterns import matches_text, read_pattern
from gateway.dialects.registry import UnknownSystemError, find_dialect
from gateway.errors import GatewayError, SubjectError, TranslationError, shown
from gateway.translate.names import Translator
from gateway.translate.subscriptions import Covering, translate_pattern

Answer: TypeAlias = "dict[str, bool | str | list[str]]"
Request: TypeAlias = Mapping[str, object]

REMEMBERED = 1_000  # subscriptions of latest requests


class RequestError(GatewayError):
    """The request itself is wrong; `rule` is the short name scripts decide by."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule


def answer_line(line: bytes) -> str:
    """The answer to one line of JSON in UTF-8, as one line of JSON."""
    try:
        request = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        return json.dumps({"error": f"not JSON: {error}", "rule": "not-json"})
    return json.dumps(answer(request))


def answer(request: object) -> Answer:
    """The answer to one request; `{"error": ..., "rule": ...}` when it cannot be answered."""
    try:
        fields = _fields(request)
        return _operation(_text(fields, "op"))(fields)
    except UnknownSystemError as error:
        return {"error": str(error), "rule": "unknown-system"}
    except (RequestError, SubjectError, TranslationError) as error:
        return {"error": str(error), "rule": error.rule}
    except GatewayError as error:
        return {"error": str(error), "rule": "refused"}


def _operation(op: str) -> Callable[[Request], Answer]:
    if op not in OPERATIONS:
        known = ", ".join(OPERATIONS)
        raise RequestError("unknown-op", f"unknown op {shown(op)}; known are {known}")
    return OPERATIONS[op]


def _match(fields: Request) -> Answer:
    dialect = _dialect(fields, "system")
    return {"match": matches_text(_text(fields, "pattern"), _text(fields, "name"), dialect)}


def _check(fields: Request) -> Answer:
    dialect = _dialect(fields, "system")
    if ("name" in fields) == ("pattern" in fields):
        raise RequestError("missing-field", "check needs either 'name' or 'pattern'")
    text = _text(fields, "name" if "name" in fields else "pattern")
    try:
        if "name" in fields:
            check_name(text, dialect)
        else:
            read_pattern(text, dialect)
    except SubjectError as error:
        return {"valid": False, "rule": error.rule, "detail": str(error)}
    warnings = list(warnings_of(text, dialect))
    return {"valid": True, "warnings": warnings} if warnings else {"valid": True}


def _translate(fields: Request) -> Answer:
    translator = _pair(_dialect(fields, "from").name, _dialect(fields, "to").name)
    name = _text(fields, "name")
    each = fields.get("tags")
    if each not in (None, "each"):
        raise RequestError("wrong-value", "'tags' is 'each' or not there")
    try:
        if each is not None:
            return {"names": list(translator.names(name))}
        return {"name": translator.name(name)}
    except (TranslationError, SubjectError) as error:
        return _no_name(error)


def _subscribe(fields: Request) -> Answer:
    try:
        covering = _covering(fields)
    except TranslationError as error:
        return _no_name(error)
    found: Answer = {"patterns": list(covering.patterns), "exact": covering.exact}
    if covering.residual:
        found["residual"] = covering.residual
    if covering.omits:
        found["omits"] = covering.omits
    return found


def _delivers(fields: Request) -> Answer:
    name = _text(fields, "name")
    try:
        return {"match": _covering(fields).delivers(name)}
    except (TranslationError, SubjectError) as error:
        return _no_name(error)


OPERATIONS: Mapping[str, Callable[[Request], Answer]] = {
    "match": _match,
    "check": _check,
    "translate": _translate,
    "subscribe": _subscribe,
    "delivers": _delivers,
}
BRIDGED_NEVER = frozenset({"local", "inbox", "reserved"})  # the source has them for itself


def _covering(fields: Request) -> Covering:
    pattern = _text(fields, "pattern")
    return _cover(pattern, _dialect(fields, "from").name, _dialect(fields, "to").name)


def _no_name(error: TranslationError | SubjectError) -> Answer:
    """Refused when it is legal where it comes from, else an error."""
    legal = isinstance(error, TranslationError) or error.rule in BRIDGED_NEVER
    return {"refused" if legal else "error": str(error), "rule": error.rule}


def _fields(request: object) -> Request:
    if not isinstance(request, dict):
        raise RequestError("not-an-object", "a request is a JSON object")
    return request


def _text(fields: Request, key: str) -> str:
    if key not in fields:
        raise RequestError("missing-field", f"field {key!r} is missing")
    value = fields[key]
    if not isinstance(value, str):
        raise RequestError("wrong-type", f"field {key!r} is not text")
    return value


def _dialect(fields: Request, key: str) -> Dialect:
    return find_dialect(_text(fields, key))


@lru_cache
def _pair(source: str, target: str) -> Translator:
    return Translator(find_dialect(source), find_dialect(target))


@lru_cache(REMEMBERED)
def _cover(pattern: str, source: str, target: str) -> Covering:
    translator = _pair(source, target)
    return translate_pattern(pattern, translator.source, translator.target, translator)

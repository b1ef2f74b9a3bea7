"""Requests about names and their answers as JSON values, see `gateway names` in `docs/names.md`.

A wrong request has an answer too: an object with `error` and `rule`.
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
from gateway.dialects.registry import find_dialect
from gateway.errors import GatewayError, SubjectError, TranslationError, quoted
from gateway.translate.names import Renderer, Translator
from gateway.translate.subscriptions import Covering, translate_pattern

Answer: TypeAlias = "dict[str, bool | str | list[str]]"
Request: TypeAlias = Mapping[str, object]

CACHED_SUBSCRIPTIONS = 1_000


class RequestError(GatewayError):
    """The request itself is wrong; `rule` is the short name for scripts."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule


def answer_line(line: bytes) -> str:
    """Answer one line of JSON in UTF-8 with one line of JSON."""
    try:
        request = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        return json.dumps({"error": f"not JSON: {error}", "rule": "not-json"})
    return json.dumps(answer(request))


def answer(request: object) -> Answer:
    """Answer one request; the answer to a wrong request is `{"error": ..., "rule": ...}`."""
    try:
        if not isinstance(request, dict):
            raise RequestError("not-an-object", "a request is a JSON object")
        if (op := _text(request, "op")) not in OPERATIONS:
            known = ", ".join(OPERATIONS)
            raise RequestError("unknown-op", f"unknown op {quoted(op)}; known are {known}")
        return OPERATIONS[op](request)
    except GatewayError as error:
        return {"error": str(error), "rule": getattr(error, "rule", "refused")}


def _match(fields: Request) -> Answer:
    dialect = _dialect(fields, "system")
    return {"match": matches_text(_text(fields, "pattern"), _text(fields, "name"), dialect)}


def _check(fields: Request) -> Answer:
    dialect = _dialect(fields, "system")
    if ("name" in fields) == ("pattern" in fields):
        raise RequestError("missing-field", "check needs either 'name' or 'pattern'")
    key, check = ("name", check_name) if "name" in fields else ("pattern", read_pattern)
    text = _text(fields, key)
    try:
        check(text, dialect)
    except SubjectError as error:
        return {"valid": False, "rule": error.rule, "detail": str(error)}
    warnings = list(warnings_of(text, dialect))
    return {"valid": True, "warnings": warnings} if warnings else {"valid": True}


def _translate(fields: Request) -> Answer:
    translator = _translator(_dialect(fields, "from").name, _dialect(fields, "to").name)
    name = _text(fields, "name")
    tags = fields.get("tags")
    if tags not in (None, "each"):
        raise RequestError("wrong-value", "'tags' is 'each' or not there")
    try:
        if tags is not None:
            return {"names": list(translator.names(name))}
        return {"name": translator.name(name)}
    except (TranslationError, SubjectError) as error:
        return _refusal(error)


def _subscribe(fields: Request) -> Answer:
    try:
        covering = _covering_of(fields)
    except TranslationError as error:
        return _refusal(error)
    found: Answer = {"patterns": list(covering.patterns), "exact": covering.exact}
    if covering.residual:
        found["residual"] = covering.residual
    if covering.omits:
        found["omits"] = covering.omits
    return found


def _delivers(fields: Request) -> Answer:
    name = _text(fields, "name")
    try:
        return {"match": _covering_of(fields).delivers(name)}
    except (TranslationError, SubjectError) as error:
        return _refusal(error)


OPERATIONS: Mapping[str, Callable[[Request], Answer]] = {
    "match": _match,
    "check": _check,
    "translate": _translate,
    "subscribe": _subscribe,
    "delivers": _delivers,
}
NEVER_BRIDGED = frozenset({"local", "inbox", "reserved"})  # legal names that stay at the source


def _covering_of(fields: Request) -> Covering:
    pattern = _text(fields, "pattern")
    return _cached_covering(pattern, _dialect(fields, "from").name, _dialect(fields, "to").name)


def _refusal(error: TranslationError | SubjectError) -> Answer:
    """Answer `refused` for a text that is legal at the source, else `error`."""
    legal = isinstance(error, TranslationError) or error.rule in NEVER_BRIDGED
    return {"refused" if legal else "error": str(error), "rule": error.rule}


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
def _translator(source: str, target: str) -> Translator:
    return Translator(find_dialect(source), Renderer(find_dialect(target)))


@lru_cache(CACHED_SUBSCRIPTIONS)
def _cached_covering(pattern: str, source: str, target: str) -> Covering:
    translator = _translator(source, target)
    return translate_pattern(pattern, translator.source, translator.target, translator)

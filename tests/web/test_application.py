"""The responses of each path, by method, host and token."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.registry import DIALECTS
from gateway.web.application import WebApplication
from gateway.web.exchange import HttpRequest
from tests.web.status_samples import LOCAL, STANDBY, FakeStatus, endpoint, refusal, route, status

TOKEN = "correct-horse-battery-staple"  # noqa: S105  # only of the tests


def make_application(token: str | None = None, **facts: object) -> WebApplication:
    return WebApplication(
        FakeStatus(status(**facts)), () if token is None else (token,), mutual_tls=False
    )


def get(application: WebApplication, target: str, **headers: str) -> tuple[int, str]:
    path, _, query = target.partition("?")
    answer = application.answer(HttpRequest("GET", path, query, {**LOCAL, **headers}))
    return answer.status, answer.body.decode()


@pytest.mark.parametrize(
    ("target", "code", "part"),
    [
        ("/", 200, "<!doctype html>"),
        ("/healthz", 200, "ok\n"),
        ("/readyz", 200, "ready\n"),
        ("/metrics", 200, 'gateway_info{gateway="plant-1",version="1.2.3"} 1.0\n'),
        ("/api/status", 200, '"gateway":"plant-1"'),
        ("/api/explain?system=mqtt&text=a/b", 200, '"names":["a.b"]'),
        ("/api/explain?system=mqtt&kind=pattern&text=a/%23", 200, '"patterns":["a","a.>"]'),
        ("/api/explain?system=ems&text=a..b", 200, '"rule":"empty-element"'),
        ("/api/explain?system=mqtt", 400, "parameter 'text' is missing"),
        ("/api/explain?system=mqtt&text=a&text=b", 400, "parameter 'text' is given twice"),
        ("/api/explain?system=mqtt&text=%ff", 400, "not a list of parameters in UTF-8"),
        ("/api/explain?system=martian&text=a", 400, "unknown system 'martian'; known are ems"),
        ("/api/explain?system=solace&text=a", 400, "unknown system 'solace'; did you mean 'smf'?"),
        ("/api/explain?system=mqtt&kind=tag&text=a", 400, "kind: 'tag' is neither"),
        ("/api/explain?system=mqtt&text=" + "a" * 4_097, 400, "text: 4097 characters, limit 4096"),
        ("/favicon.ico", 404, "no such page"),
        ("/../etc/passwd", 404, "no such page"),
        ("/api/status/", 404, "no such page"),
    ],
)
def test_each_path_has_its_answer(target: str, code: int, part: str) -> None:
    found = get(make_application(), target)

    assert found[0] == code
    assert part in found[1]


def test_a_gateway_without_one_of_its_threads_is_not_alive() -> None:
    failure = "thread spool ended: OSError: read-only"

    assert get(make_application(thread_failure=failure), "/healthz") == (503, f"{failure}\n")
    guarded = make_application(TOKEN, thread_failure=failure)
    assert get(guarded, "/healthz") == (503, "a thread ended\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"])
@pytest.mark.parametrize("path", ["/", "/api/status", "/nowhere"])
def test_every_method_except_get_and_head_is_refused(method: str, path: str) -> None:
    answer = make_application().answer(HttpRequest(method, path, headers=LOCAL))

    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8047", 200),
        ("localhost:9", 200),
        ("[::1]:8047", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8047", 403),
        ("127.0.0.1:80@evil.example", 403),
        ("localhost:x", 403),
        ("[::1]evil.example", 403),
        ("[::1%25evil.example]", 403),
        ("127.0.0.1:80, evil.example", 403),
        ("127.0.0.1:\u0661", 403),
        ("", 403),
    ],
)
def test_without_a_token_only_loopback_hosts_are_answered(host: str, code: int) -> None:
    assert get(make_application(), "/api/status", host=host)[0] == code
    assert get(make_application(TOKEN), "/healthz", host=host)[0] == 200


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer ", 401),
        ("Bearer \xe9", 401),
        ("", 401),
    ],
)
@pytest.mark.parametrize("path", ["/api/status", "/metrics", "/api/explain?system=mqtt&text=a"])
def test_a_guarded_path_needs_the_token(path: str, authorization: str, code: int) -> None:
    assert get(make_application(TOKEN), path, authorization=authorization)[0] == code


def test_probes_need_no_token_and_get_no_reasons() -> None:
    lost = make_application(
        TOKEN, endpoints=(endpoint(connection="lost", reason="secret.host refused"),)
    )

    assert get(lost, "/readyz") == (503, "not ready\n")
    code, text = get(lost, "/readyz", authorization=f"Bearer {TOKEN}")
    assert (code, text) == (
        503,
        "not ready\nendpoint plant (source): lost, secret.host refused\n",
    )


def test_a_refused_reload_is_a_warning_of_a_ready_gateway() -> None:
    refused = "gateway.yaml:3:1: unknown field 'prot'"
    ready = make_application(TOKEN, reload_refused=refused)

    assert get(ready, "/readyz") == (200, "ready\n")
    code, text = get(ready, "/readyz", authorization=f"Bearer {TOKEN}")
    assert (code, text.splitlines()[0]) == (200, "ready")
    assert f"before it runs: {refused}" in text
    found = json.loads(get(ready, "/api/status", authorization=f"Bearer {TOKEN}")[1])
    assert [refused in each for each in found["warnings"]] == [True]


def test_no_answer_holds_the_token() -> None:
    guarded = make_application(TOKEN)
    paths = ["/", "/readyz", "/metrics", "/api/status", "/api/explain?system=mqtt&text=a", "/x"]

    for path in paths:
        assert TOKEN not in get(guarded, path, authorization=f"Bearer {TOKEN}")[1]
        assert TOKEN not in get(guarded, path, authorization="Bearer wrong")[1]


def test_the_page_has_no_text_from_brokers() -> None:
    """Text from brokers reaches the page only as JSON, which the script inserts as text."""
    hostile = "<script>alert(1)</script>"
    bad = make_application(
        routes=(route(rules={hostile: 1}, refusals=(refusal(hostile, reason=hostile),)),)
    )

    assert get(bad, "/")[1] == get(make_application(), "/")[1]
    assert json.loads(get(bad, "/api/status")[1])["refusals"][0]["name"] == hostile


TEXTS = st.text(max_size=60)
PATHS = st.sampled_from(["/", "/healthz", "/readyz", "/metrics", "/api/status", "/api/explain"])


@given(st.text(max_size=10), PATHS | TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_any_request_has_a_response_without_an_internal_error(
    method: str, path: str, query: str, headers: dict[str, str]
) -> None:
    for verb in ("GET", method):
        answer = make_application().answer(HttpRequest(verb, path, query, {**LOCAL, **headers}))
        assert answer.status in {200, 400, 403, 404, 405}
        assert path == "/" or not answer.type.startswith("text/html")


@given(
    st.sampled_from([*DIALECTS, "martian", ""]),
    st.sampled_from(["name", "pattern"]),
    st.text(alphabet=st.sampled_from('ab/.*+>#$%_{}<"&é\0 ,'), max_size=24) | TEXTS,
)
def test_any_text_can_be_looked_up(system: str, kind: str, text: str) -> None:
    query = urlencode({"system": system, "kind": kind, "text": text}, errors="surrogatepass")
    answer = make_application().answer(HttpRequest("GET", "/api/explain", query, LOCAL))

    found = json.loads(answer.body)
    assert answer.type == "application/json"
    assert answer.status == (200 if system in {*DIALECTS, ""} else 400)
    if answer.status == 200:
        assert found["text"] == text
        assert len(found["elsewhere"]) in {0, len(DIALECTS) - 1}


def test_a_standby_is_ready_and_says_that_it_waits() -> None:
    waiting = WebApplication(FakeStatus(status(pair=STANDBY, endpoints=())), mutual_tls=False)
    assert get(waiting, "/readyz") == (200, "standby\n")

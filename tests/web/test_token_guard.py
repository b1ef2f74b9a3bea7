"""Guesses of the token are slowed down by address; other addresses are answered at once."""

from __future__ import annotations

import socket

import pytest

from gateway.config.process import WebSettings
from gateway.web import token_guard
from gateway.web.connection_limits import PeerConnection
from gateway.web.server import WebServer
from gateway.web.token_guard import INTERVAL, TRIES, Access, TokenGuard
from tests.waiting import PATIENCE
from tests.web.status_samples import FakeStatus, served, status

TOKEN = "correct-horse-battery-staple"  # noqa: S105  # only of the tests
RIGHT = f"Bearer {TOKEN}"


class Rig:
    """A guard with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.guard = TokenGuard((TOKEN,), lambda: self.now)

    def ask(self, authorization: str, address: str = "192.0.2.1") -> Access:
        return self.guard.check(authorization, PeerConnection(address, self.now))

    def guess(self, times: int, address: str = "192.0.2.1") -> int:
        """Return how many of these guesses were compared."""
        found = [self.ask(f"Bearer guess-{number}", address) for number in range(times)]
        assert Access.ALLOWED not in found
        return found.count(Access.REFUSED)


def test_an_address_has_a_few_guesses_and_then_one_in_each_interval() -> None:
    rig = Rig()

    assert rig.guess(1_000) == TRIES
    rig.now += 60 * INTERVAL
    assert rig.guess(1_000) == TRIES
    compared = 0
    for _ in range(600):
        rig.now += INTERVAL / 10
        compared += rig.guess(10)
    assert 59 <= compared <= 61


def test_the_right_token_of_a_guessing_address_looks_like_a_wrong_one() -> None:
    rig = Rig()
    rig.guess(TRIES)

    assert rig.ask(RIGHT) is rig.ask("Bearer wrong") is Access.DEFERRED


def test_nobody_is_locked_out_for_ever() -> None:
    rig = Rig()
    rig.guess(1_000_000 // TRIES)

    rig.now += INTERVAL
    assert rig.ask(RIGHT) is Access.ALLOWED


def test_other_addresses_are_answered_at_once() -> None:
    rig = Rig()
    rig.guess(1_000)

    assert rig.ask(RIGHT, "192.0.2.2") is Access.ALLOWED


def test_a_connection_that_showed_the_token_is_answered_while_its_address_guesses() -> None:
    """As behind a proxy, or a translation of addresses."""
    rig = Rig()
    known = PeerConnection("192.0.2.1", rig.now)
    assert rig.guard.check(RIGHT, known) is Access.ALLOWED
    rig.guess(1_000)

    assert [rig.guard.check(RIGHT, known) for _ in range(100)] == [Access.ALLOWED] * 100
    assert rig.guard.check("Bearer wrong", known) is Access.REFUSED  # a proxy mixes its clients
    assert rig.guard.check(RIGHT, known) is Access.DEFERRED


def test_right_and_absent_tokens_take_no_try() -> None:
    rig = Rig()
    for _ in range(10 * TRIES):
        assert rig.ask(RIGHT) is Access.ALLOWED
        assert rig.ask("") is Access.REFUSED

    assert rig.guess(1_000) == TRIES


def test_a_million_addresses_take_bounded_memory_and_free_no_guesser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(token_guard, "_MAX_ADDRESSES", 64)
    rig = Rig()
    rig.guess(TRIES, "the guesser")

    for number in range(10_000):
        rig.guess(1, f"other {number}")
        assert len(rig.guard._all_tries) <= 64  # noqa: SLF001  # its memory
    assert rig.ask(RIGHT, "the guesser") is Access.DEFERRED


def code_of(server: WebServer, token: str, source: str, path: str = "/api/status") -> int:
    """Return the status of the answer over a connection from `source`."""
    head = f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
    address = ("127.0.0.1", server.port)
    with socket.create_connection(address, PATIENCE, (source, 0)) as peer:
        peer.sendall(head.encode() + b"Connection: close\r\n\r\n")
        with peer.makefile("rb") as stream:
            return int(stream.read().split()[1])


@pytest.mark.parametrize("path", ["/api/status", "/metrics", "/readyz", "/healthz"])
def test_guesses_at_any_path_are_counted(path: str) -> None:
    settings = WebSettings(port=0, token=TOKEN)
    with served(FakeStatus(status()), settings) as server:
        for number in range(2 * TRIES):
            code_of(server, f"guess-{number}", "127.0.0.1", path)

        assert code_of(server, TOKEN, "127.0.0.1") == 429
        assert code_of(server, TOKEN, "127.0.0.2") == 200
        assert code_of(server, "wrong", "127.0.0.1", "/healthz") == 200


def test_two_tokens_are_valid_until_one_is_taken_away() -> None:
    rig = Rig()
    new = "Bearer another-token-of-the-page"
    assert rig.ask(new) is Access.REFUSED

    rig.guard.use((new.removeprefix("Bearer "), TOKEN))
    assert rig.ask(RIGHT) is rig.ask(new) is Access.ALLOWED

    rig.guard.use((new.removeprefix("Bearer "),))
    assert rig.ask(new) is Access.ALLOWED
    assert rig.ask(RIGHT) is Access.REFUSED

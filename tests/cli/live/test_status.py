"""`gateway status` and `gateway top` against a server with a given status."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from gateway.cli import main
from gateway.config.process import WebSettings
from gateway.errors import GatewayError
from gateway.trial.brokers.listening import free_port
from gateway.web import client
from gateway.web.snapshot import StatusSnapshot
from tests.waiting import PATIENCE, until
from tests.web.status_samples import FakeStatus, endpoint, refusal, route, served, status

TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105  # only of the tests
LOST = endpoint("office", "sink", connection="lost", reason="office: gone", spooled_messages=1_234)


def test_a_ready_gateway_gives_exit_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    with served(FakeStatus(status())) as server:
        assert main(["status", "--url", server.url]) == 0

    output = capsys.readouterr().out
    assert "plant-1 ready" in output
    assert "telemetry" in output


def test_a_gateway_that_is_not_ready_gives_exit_status_1_and_the_reasons(
    capsys: pytest.CaptureFixture[str],
) -> None:
    routes = (route(rules={"too-long": 7}, refusals=(refusal("a/b"),), heartbeat_age=99.0),)
    with served(FakeStatus(status(endpoints=(LOST,), routes=routes))) as server:
        assert main(["status", "--url", server.url]) == 1

    output = capsys.readouterr().out
    for part in ("not ready", "office: gone", "1,234", "too-long 7", "99 s", "a/b"):
        assert part in output


CONFIG = """\
gateway: {{name: plant-1}}
endpoints: {{plant: {{kind: memory, dialect: mqtt, broker: plant}}}}
routes: {{copy: {{from: {{endpoint: plant, pattern: a}}, to: {{endpoint: plant, template: b}}}}}}
{web}
"""


def test_the_status_needs_nothing_of_a_configuration_but_its_section_web(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    with served(FakeStatus(status()), WebSettings(port=0, token=TOKEN)) as server:
        port = server.url.rpartition(":")[2]
        (tmp_path / "token").write_text(TOKEN)
        file.write_text(
            f"endpoints: {{plant: {{kind: mqtt, password: '${{env:ABSENT_HERE}}', prot: 1}}}}\n"
            f"web: {{port: {port}, token: '${{file:{tmp_path}/token}}'}}\n"
        )

        assert main(["status", str(file)]) == 0


@pytest.mark.parametrize(
    ("token", "printed"), [(None, "ready"), (TOKEN, "it needs a token; give CONFIG, and the")]
)
def test_a_token_without_a_value_is_missed_only_where_the_gateway_wants_it(
    tmp_path: Path, token: str | None, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    with served(FakeStatus(status()), WebSettings(port=0, token=token)) as server:
        port = server.url.rpartition(":")[2]
        file.write_text(CONFIG.format(web=f'web: {{port: {port}, token: "${{env:ABSENT_HERE}}"}}'))
        assert main(["status", str(file)]) == (2 if token else 0)

    shown = capsys.readouterr()
    assert printed in shown.out + shown.err


def test_a_token_that_this_shell_lacks_leaves_no_open_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The operator was told to set a token, which the file has."""
    file = tmp_path / "gateway.yaml"
    with served(FakeStatus(status()), WebSettings(port=0, token=TOKEN)) as server:
        port = server.url.rpartition(":")[2]
        web = f'web: {{address: 0.0.0.0, port: {port}, token: "${{env:ABSENT_HERE}}"}}'
        file.write_text(CONFIG.format(web=web))
        assert main(["status", str(file)]) == 2

    assert "it needs a token; give CONFIG, and the variable" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["status"], ["top", "--count", "1"]])
def test_a_configuration_says_address_and_token(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "gateway.yaml"
    with served(FakeStatus(status()), WebSettings(port=0, token=TOKEN)) as server:
        port = server.url.rpartition(":")[2]
        web = f'web: {{address: 0.0.0.0, port: {port}, token: "${{env:WEB_TOKEN}}"}}'
        file.write_text(CONFIG.format(web=web))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WEB_TOKEN", TOKEN)
            assert main([*command, str(file)]) == 0


@pytest.mark.parametrize(("web", "missing"), [("", "`web`"), ("web: {port: 0}", "`web.port`")])
def test_a_configuration_without_an_address_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], web: str, missing: str
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.format(web=web))

    assert main(["status", str(file)]) == 2
    assert f"has no {missing}; add it, or give the address with --url" in capsys.readouterr().err


def test_json_output_is_the_answer_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    with served(FakeStatus(status(endpoints=(LOST,)))) as server:
        assert main(["status", "--json", "--url", server.url]) == 1

    found = json.loads(capsys.readouterr().out)
    assert found["reasons"] == ["endpoint office (sink): lost, office: gone"]


def test_the_status_waits_until_the_gateway_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    with served(FakeStatus(status(endpoints=(LOST,)))) as server, ThreadPoolExecutor() as pool:
        assert main(["status", "--wait", "0.2", "--url", server.url]) == 1
        assert main(["status", "--wait", "0.2", "--url", f"http://127.0.0.1:{free_port()}"]) == 2

        fake = Recovering(status(endpoints=(LOST,)))
        with served(fake) as recovering:
            waiting = pool.submit(main, ["status", "--wait", "60", "--url", recovering.url])
            until(lambda: fake.asked > 2)
            fake.status = status()
            assert waiting.result(PATIENCE) == 0

    assert "plant-1 ready" in capsys.readouterr().out


def test_the_status_waits_for_no_other_token(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("another\n")
    with served(FakeStatus(status()), WebSettings(port=0, token=TOKEN)) as server:
        arguments = ["--url", server.url, "--token-file", str(wrong)]
        assert main(["status", "--wait", "1e9", *arguments]) == 2


class TakingOver(FakeStatus):
    """An instance of a pair: a ready standby that takes over, and connects."""

    asked = 0

    def snapshot(self) -> StatusSnapshot:
        self.asked += 1
        self.status = status(endpoints=(LOST,)) if 1 < self.asked < 4 else status()
        return super().snapshot()


def test_the_status_shows_what_it_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with served(TakingOver(status())) as server:
        assert main(["status", "--wait", "60", "--url", server.url]) == 0

    assert "not ready" not in capsys.readouterr().out


class Recovering(FakeStatus):
    """A gateway that counts the questions."""

    asked = 0

    def snapshot(self) -> StatusSnapshot:
        self.asked += 1
        return super().snapshot()


def test_top_shows_the_given_number_of_updates(capsys: pytest.CaptureFixture[str]) -> None:
    with served(FakeStatus(status())) as server:
        assert main(["top", "--count", "2", "--seconds", "0.1", "--url", server.url]) == 0

    assert capsys.readouterr().out.count("plant-1 ready") == 2


def test_top_without_a_gateway_gives_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert main(["top", "--url", url]) == 1

    output = capsys.readouterr()
    assert "no answer: Connection refused" in output.err
    assert output.out == ""


class Vanishing(FakeStatus):
    """A gateway that answers once, and then with an error."""

    asked = 0

    def snapshot(self) -> StatusSnapshot:
        self.asked += 1
        if self.asked > 1:
            raise GatewayError("gone")
        return super().snapshot()


def test_top_shows_a_gateway_that_stops_answering_and_continues(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with served(Vanishing(status())) as server:
        assert main(["top", "--count", "3", "--seconds", "0.1", "--url", server.url]) == 0

    output = capsys.readouterr().out
    assert output.count("plant-1 ready") == 1
    assert output.count("gateway: ") == 2


def test_only_the_right_token_gives_access(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text(f"{TOKEN}\n")
    wrong.write_text("another\n")
    with served(FakeStatus(status()), WebSettings(port=0, token=TOKEN)) as server:
        url = server.url
        assert main(["status", "--json", "--url", url, "--token-file", str(right)]) == 0
        for options in ([], ["--token-file", str(wrong)]):
            assert main(["status", "--url", url, *options]) == 2

    output = capsys.readouterr()
    hint = "give CONFIG, and the variable or file that its `web.token` names"
    assert f"{url}: it needs a token; {hint}" in output.err
    assert f"{url}: the token is wrong; {hint}" in output.err
    assert TOKEN not in output.err + output.out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--url", "ftp://127.0.0.1"], "ftp://127.0.0.1: not the URL of a gateway"),
        (["--url", "http://"], "http://: not the URL of a gateway"),
        (["--url", "http://host:x"], "http://host:x: not the URL of a gateway"),
        (["--url", "http://[::1"], "http://[::1: not the URL of a gateway"),
        (["--token-file", "/nowhere/token"], "/nowhere/token: cannot read the token"),
        (["--ca-file", "/nowhere/ca.pem"], "/nowhere/ca.pem: cannot be used"),
    ],
)
def test_an_unusable_argument_gives_exit_status_2(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", *arguments]) == 2
    assert reason in capsys.readouterr().err


class Redirecting(BaseHTTPRequestHandler):
    """Redirects each request to the port in `target`, and keeps the headers of all."""

    target = 0
    tokens: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.tokens.append(self.headers["Authorization"])
        self.send_response(int(self.path.split("/")[1]))
        self.send_header("Location", f"http://localhost:{self.target}/302/x")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_does_not_get_the_token(
    tmp_path: Path, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        Redirecting.target, Redirecting.tokens = server.server_port, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{code}"
        assert main(["status", "--url", url, "--token-file", str(token)]) == 2
        server.shutdown()

    assert f"the answer is a redirect ({code}); write the address" in capsys.readouterr().err
    assert Redirecting.tokens == [f"Bearer {TOKEN}"]


def test_a_proxy_of_the_environment_gets_no_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("no_proxy", "")
    with served(FakeStatus(status()), WebSettings(port=0, token=TOKEN)) as server:
        assert main(["status", "--json", "--url", server.url, "--token-file", str(token)]) == 0


def test_an_answer_that_comes_byte_by_byte_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes within the time, and the answer does not."""
    monkeypatch.setattr(client, "RESPONSE_TIMEOUT", 0.4)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def answer() -> None:
            peer, _ = listening.accept()
            with peer, suppress(OSError):
                peer.sendall(b"HTTP/1.0 200 OK\r\nX: ")
                while not ended.wait(0.1):
                    peer.sendall(b"x")

        threading.Thread(target=answer, daemon=True).start()
        assert main(["status", "--url", f"http://127.0.0.1:{port}"]) == 2
        ended.set()

    assert "no whole answer within 0.4 s" in capsys.readouterr().err


def test_an_answer_that_nests_too_deep_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def answer() -> None:
            peer, _ = listening.accept()
            with peer:
                peer.recv(1 << 16)
                peer.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 200_000)

        threading.Thread(target=answer, daemon=True).start()
        assert main(["status", "--url", f"http://127.0.0.1:{port}"]) == 2

    assert "not the answer of a gateway" in capsys.readouterr().err

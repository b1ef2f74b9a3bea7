"""The commands `match`, `translate` and `names`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from gateway.cli import make_parser


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    args = make_parser(arguments[0]).parse_args(arguments)
    code: int = args.run(args)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        (("match", "a/#", "a", "--system", "mqtt"), 0, "match\n"),
        (("match", "a.>", "a", "--system", "ems"), 1, "no match\n"),
        (("match", "a.>", "a", "--system", "ems", "--json"), 1, '{"match": false}\n'),
        (("translate", "a/b.c", "--from", "mqtt", "--to", "ems"), 0, "a.b%2Ec\n"),
        (
            ("translate", "a", "--from", "mqtt", "--to", "ems", "--json"),
            0,
            '{"name": "a"}\n',
        ),
        (
            ("translate", "orders/#", "--from", "mqtt", "--to", "ems", "--pattern"),
            0,
            "orders\norders.>\nexact\n",
        ),
        (
            ("translate", "a.>", "--from", "ems", "--to", "mqtt", "--pattern"),
            0,
            "a/#\nfiltered by the gateway: not 'a' itself\n",
        ),
        (("translate", "a,b", "--from", "yami4", "--to", "ems", "--each"), 0, "a\nb\n"),
    ],
)
def test_an_answer_is_printed_with_its_exit_status(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, output: str
) -> None:
    assert _run(capsys, *arguments) == (code, output, "")


def test_a_refusal_gives_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = _run(capsys, "translate", "_LOCAL.x", "--from", "rv", "--to", "mqtt")

    assert code == 1
    assert output.startswith("refused: rv: '_LOCAL.x'")
    assert output.endswith("(rule local)\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate", "a..b", "--from", "ems", "--to", "mqtt"),
        ("translate", "a"),
        ("translate", "a", "--config", "x.yaml"),
        ("match", "a*", "a", "--system", "ems"),
        ("match", "a", "a", "--system", "pulsar"),
    ],
)
def test_a_wrong_argument_gives_exit_status_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    code, output, error = _run(capsys, *arguments)

    assert (code, output) == (2, "")
    assert error.startswith("gateway: ")


def test_every_line_is_answered_in_order_even_an_invalid_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        b'{"op":"match","system":"mqtt","pattern":"a/#","name":"a"}',
        b"\xff not json",
        b'{"op":"translate","from":"mqtt","to":"ems","name":"a/b"}',
    ]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines))))

    code, output, _ = _run(capsys, "names")

    first, second, third = map(json.loads, output.splitlines())
    assert (code, first, third) == (0, {"match": True}, {"name": "a.b"})
    assert second["rule"] == "not-json"


CONFIG = """\
endpoints:
  here: {kind: memory, dialect: ems}
  there: {kind: memory, dialect: mqtt}
routes:
  orders:
    from: {endpoint: here, pattern: "orders.{region}.{rest...}"}
    to: [{endpoint: there, template: "erp/{region}/{rest...}"}]
"""


def test_a_name_is_translated_by_a_route(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "routes.yaml"
    file.write_text(CONFIG)
    by_route = ("--config", str(file), "--route", "orders")

    code, output, _ = _run(capsys, "translate", "orders.emea.fx.1", *by_route)

    assert (code, output) == (0, "there (mqtt): erp/emea/fx/1\n")
    assert _run(capsys, "translate", "trades.x.y", *by_route)[0] == 1

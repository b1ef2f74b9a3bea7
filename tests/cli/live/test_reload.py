"""The result of a reload, as the metrics show it."""

from __future__ import annotations

from pathlib import Path

from gateway.cli.live.run import reload
from gateway.config.load import load
from gateway.logs.lines import set_up_logging
from gateway.runtime.gateway import Gateway
from gateway.runtime.status import take_status
from tests.runtime.one_route import ONE_ROUTE


def test_the_status_tells_a_refused_reload_until_the_next_good_one(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    running = Gateway(load(file))
    running.start()
    control = set_up_logging("error", "json")
    try:
        refused = []
        for text in (ONE_ROUTE, ONE_ROUTE + "\nprot: 1\n", ONE_ROUTE):
            file.write_text(text)
            reload(running, file, control, None)
            refused.append(take_status(running).reload_refused)
    finally:
        control.close()
        running.stop(1)

    first, second, third = refused
    assert (first, third) == ("", "")
    assert f"{file}:" in second
    assert "'prot'" in second
    assert "more finding" not in second

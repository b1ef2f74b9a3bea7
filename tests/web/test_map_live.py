"""The flow map of `gateway run` between real brokers: one is stopped, one refuses, one freezes."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Final

import pytest
from paho.mqtt import publish
from selenium import webdriver

from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Process
from tests.chromium import NEEDS_CHROMIUM
from tests.web.page import Page

pytestmark = [pytest.mark.broker, *NEEDS_CHROMIUM]
PAUSES: Final = "backoff_min: 0.1, backoff_max: 1"
CONFIG: Final = f"""\
gateway: {{{{name: test, stuck_after_seconds: 600}}}}
endpoints:
  plant: {{{{kind: mqtt, host: 127.0.0.1, port: {{plant}}, {PAUSES}}}}}
  office: {{{{kind: mqtt, host: 127.0.0.1, port: {{office}}, {PAUSES}}}}}
  closed: {{{{kind: mqtt, host: 127.0.0.1, port: {{closed}}, backoff_min: 600, backoff_max: 600}}}}
  away: {{{{kind: mqtt, host: 127.0.0.1, port: {{away}}, {PAUSES}}}}}
routes:
  kept:
    from: {{{{endpoint: plant, pattern: "kept/{{{{rest...}}}}"}}}}
    to: {{{{endpoint: office, template: "office/{{{{rest...}}}}"}}}}
  waiting:
    from: {{{{endpoint: plant, pattern: "waiting/{{{{rest...}}}}"}}}}
    to: {{{{endpoint: away, template: "away/{{{{rest...}}}}"}}}}
  refused:
    from: {{{{endpoint: plant, pattern: "refused/{{{{rest...}}}}"}}}}
    to: {{{{endpoint: closed, template: "closed/{{{{rest...}}}}"}}}}
spool: {{{{path: {{spool}}}}}}
web: {{{{port: {{port}}}}}}
"""


def edge(page: Page, name: str) -> str:
    """Return the words of the edge of a route; none before it is drawn."""
    script = ("return [...document.querySelectorAll('#map .edge')].map((e) => e.ariaLabel)"
              ".find((text) => text.startsWith(arguments[0])) || ''")  # fmt: skip
    return str(page.browser.execute_script(script, f"{name}: "))


def open_route(page: Page, name: str) -> None:
    page.find(f'#routes-table button[data-route="{name}"]').click()
    page.until(lambda: page.find("#details-title").text == f"Route {name}")


@pytest.mark.nightly
def test_the_map_follows_real_brokers(
    tmp_path: Path, start_mosquitto: StartMosquitto, chromium: webdriver.Chrome
) -> None:
    (tmp_path / "passwords").write_text("")
    plant, office, away = start_mosquitto(), start_mosquitto(), start_mosquitto()
    closed = start_mosquitto("allow_anonymous false", f"password_file {tmp_path / 'passwords'}")
    port = free_port()
    config = tmp_path / "gateway.yaml"
    brokers = {"plant": plant, "office": office, "away": away, "closed": closed}
    ports = {name: broker.port for name, broker in brokers.items()}
    config.write_text(CONFIG.format(**ports, spool=tmp_path / "spool", port=port))
    process = Process(config)
    try:
        process.wait_for("connected", endpoint="away", side="sink")
        page = Page(chromium, f"http://127.0.0.1:{port}")
        page.until(lambda: edge(page, "kept").endswith(", connected"))
        page.until(lambda: edge(page, "waiting").endswith(", connected"))
        page.until(lambda: edge(page, "refused").endswith("refusing"))

        away.kill()
        publish.single("waiting/1", b"x", qos=1, hostname="127.0.0.1", port=plant.port)
        page.until(lambda: edge(page, "waiting").endswith("spooling"))
        assert edge(page, "kept").endswith("connected")

        open_route(page, "waiting")
        page.until(lambda: "messages are on disk" in page.find("#details").text)
        page.until(lambda: "away in " in page.find("#details").text.replace("now", "in "))
        text = page.find("#details-facts").text
        assert "waiting/{rest...}" in text
        assert "away/{rest...}" in text
        assert "at least once" in text
        open_route(page, "refused")
        page.until(lambda: "closed refuses the connection" in page.find("#details").text)
        page.until(lambda: "closed in " in page.find("#details").text)

        office.freeze()
        publish.single("kept/1", b"x", qos=1, hostname="127.0.0.1", port=plant.port)
        page.until(lambda: edge(page, "kept").endswith("stuck"))
        office.thaw()
        page.until(lambda: edge(page, "kept").endswith(", connected"))
        away.start()
        page.until(lambda: edge(page, "waiting").endswith(", connected"))
        plant.kill()
        page.until(lambda: edge(page, "kept").endswith("not connected"))
        open_route(page, "kept")
        page.until(lambda: re.search(r"plant (now|in )", page.find("#details-facts").text))
        assert process.end() == 0
    finally:
        process.end(signal.SIGKILL)

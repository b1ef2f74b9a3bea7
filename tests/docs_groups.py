"""The test of each printed command, or the reason why it has none.

The caption of a fenced block has its reason (`tests.printed_commands.CAPTION`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.docs_world import stand_in
from tests.printed_commands import Command, printed_commands

EXCUSED = {  # outside fenced blocks: the beginning of a command, and why no test runs it as printed
    "EMS_URL=": "needs an EMS server",
    "apt-get ": "installs packages as root",
    "gateway demo": "takes minutes",
    "gateway reconcile ./archive --follow": "runs until a signal; night/reconcile/follow runs it",
    "gateway reconcile ARCHIVE --follow": "runs until a signal; night/reconcile/follow runs it",
    "gateway handover ": "needs a pair; tests/chaos/test_takeovers.py runs one",
    "gateway tail CONFIG ROUTE": "runs until a signal; tests/cli/live/test_tail.py runs it",
    "mosquitto_pub -h mqtt.example ": "its host is an example",
    "pip install ./file-bus": "tests/extension installs the package",
    "pytest -p tests.extension.rows ": "tests/extension runs them",
    "python -m benchmarks": "measures for minutes",
    "make jms-helper": "needs a JDK, and replaces a file of the package",
    "python -m tests.simulation.mutations": "takes minutes; tests/simulation runs it nightly",
}
INSTALLED = ("pipx install ", "uv tool install ")  # tests/deploy/test_artefacts.py runs them
SPARK = ("gateway archive compact ", "gateway archive names ", "gateway reconcile ")
SUBMITTED = "MASTER="  # starts a Java process
RECONCILED = (
    "--class ",
    "gateway.night.reconcile.report.html ",
)  # they read a reconciliation's tables
SERVERS = {  # and the text that they print when they are ready
    "gateway run ": "connected",
    "gateway broker ": "listening on",
}
LONG = (  # they run until the end of their story
    "gateway broker ", "gateway run ", "mosquitto ", "mosquitto_sub ",
)  # fmt: skip
STATUS = {  # other exit statuses than 0
    "gateway check wrong.yaml": 1,
    "gateway archive acknowledge ARCHIVE RULE PLACE --why TEXT": 2,  # no night found anything
    "gateway init": 2,  # without a terminal
    "gateway import ems bridges.conf topics.conf transports.conf -o ems.yaml": 1,
    "gateway import ems bridges.script tibemsd.json -o server.yaml": 1,
    "gateway import nanomq nanomq.conf -o edge.yaml": 1,
    "gateway import rabbitmq definitions.json -o orders.yaml": 1,
    "gateway import mosquitto mosquitto.conf -o plant.yaml": 2,  # the file is there
    "gateway withdraw gateway.yaml --yes --losing plant-1-office": 2,  # it has a dead letter
    "gateway withdraw gateway.yaml --yes --only plant-1-hall --losing plant-1-hall": 2,  # no such
}


@dataclass(frozen=True, slots=True)
class Story:
    """Commands of a section that carry a message to a subscriber, which prints `arrives`.

    `file` is the section's YAML file, if it does not begin with its name. `swaps` has stand-ins,
    with the number of a free port in braces. The commands of `before` run already at a reader's.
    """

    page: str
    section: str
    arrives: str
    connections: int
    swaps: Mapping[str, str]
    file: str = ""
    before: tuple[str, ...] = ()


README = Story(
    page="README.md",
    section="Move messages between two brokers",
    arrives="hall/7/temperature 21.5",
    connections=2,
    swaps={
        "1883": "{0}",
        "1884": "{1}",
        "web: {}": "web: {{port: {2}}}",
        "URL": "http://127.0.0.1:{2}",
    },
)
SOLACE = Story(
    page="docs/solace.md",
    section="To a running route",
    arrives="confirmed/emea/fx/1 10 EUR",
    connections=4,
    swaps={
        "1883": "{0}",
        "host: localhost\n": "host: localhost\n    port: {0}\n",
        "_pub ": "_pub -p {0} ",
        "_sub ": "_sub -p {0} ",
        "55555": "{1}",
    },
    file="bridge.yaml",
)
EMS = Story(
    page="docs/ems.md",
    section="The same without EMS",
    arrives="confirmed/fx hello",
    connections=4,
    swaps={
        "1883": "{0}",
        "_pub ": "_pub -p {0} ",
        "_sub ": "_sub -p {0} ",
        "61616": "{1}",
    },
    file="gateway.yaml",
    before=("mosquitto -p 1883",),  # as a service of Debian
)
STORIES = (README, SOLACE, EMS)

TYPED_PAGES = ("docs/kafka.md",)  # tests/tutorials types their sessions, beside docs/tutorials

COMMANDS = printed_commands()


BEGINNINGS = {  # of the commands of each further group
    "installed": INSTALLED,
    "submitted": (SUBMITTED,),
    "spark": SPARK,
    "server": tuple(SERVERS),
}


def group_of(command: Command) -> str:
    """Return the test that runs a command, or "excused"."""
    if command.caption or (command.caption is None and command.text.startswith(tuple(EXCUSED))):
        return "excused"
    stories = {(each.page, each.section) for each in STORIES}
    if (command.page, command.section) in stories and command.output is None:
        return "story"
    is_typed = command.page.startswith("docs/tutorials/") or command.page in TYPED_PAGES
    if is_typed and command.output is not None:
        return "tutorial"  # tests/tutorials types them, each in its story
    for name, beginnings in BEGINNINGS.items():
        if command.text.startswith(beginnings):
            return name
    return "spark" if any(each in command.text for each in RECONCILED) else "quick"


def group(name: str) -> list[Command]:
    """Return the commands of a group, one of those that differ in their stand-ins only."""
    found = {stand_in(each.text, {}): each for each in COMMANDS if group_of(each) == name}
    return list(found.values())


def of(name: str) -> pytest.MarkDecorator:
    """Give a test each command of a group."""
    found = group(name)
    return pytest.mark.parametrize(
        "command", found, ids=[f"{each.page}: {each.text}" for each in found]
    )

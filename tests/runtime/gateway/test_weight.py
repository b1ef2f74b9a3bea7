"""The weight of a batch: the functions that one message enters from its source to its answer."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import gateway
from gateway.model.message import Message
from tests.runtime.gateway.frames import counting
from tests.runtime.gateway.running import PLANT_AND_EMS, BrokerClient, running
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("journals_stay")

ROUTE = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{region}/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{region}.{rest...}"}
"""
DOCUMENT = Path(gateway.__file__).parent.parent / "docs" / "architecture.md"
WITHOUT_ARCHIVE = PLANT_AND_EMS.replace("archive: {path: archive}\n", "")


@pytest.mark.parametrize(
    ("configuration", "maximum", "files"),
    [
        pytest.param(WITHOUT_ARCHIVE, 45, 17, id="relay"),
        pytest.param(PLANT_AND_EMS, 82, 25, id="archive"),
    ],
)
def test_one_message_enters_few_functions(
    plant: BrokerClient, ems: BrokerClient, configuration: str, maximum: int, files: int
) -> None:
    with counting() as counter, running(configuration + ROUTE) as run:

        def relay() -> None:
            before = run.counters["orders"].delivered
            plant.publish(Message("orders/emea/fx/1", b"buy"))
            ems.receive(1)
            until(lambda: run.counters["orders"].delivered > before)
            until(lambda: run.pumps["plant"].settled)

        functions = counter.fewest(relay)

    assert len(functions) <= maximum, "\n".join(sorted(functions))
    assert len({each.split()[0] for each in functions}) <= files


def test_a_batch_has_at_most_six_classes_and_the_document_names_them() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(gateway[\w.]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    classes = {name: getattr(import_module(module), name) for name, module in rows}

    assert 0 < len(classes) <= 6
    assert all(isinstance(each, type) for each in classes.values())

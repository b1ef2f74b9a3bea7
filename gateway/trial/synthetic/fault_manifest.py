"""The list of the faults of a synthetic day, for comparison with a reconciliation.

ARCHIVE/_generated/faults.json
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

from gateway.clock import moment
from gateway.trial.synthetic.faults import CLASSES, UNRECORDED
from gateway.trial.synthetic.inject_faults import FaultAssignment, gateway_start
from gateway.trial.synthetic.traffic import Traffic, Window

MANIFEST: Final = Path("_generated") / "faults.json"


def write_manifest(root: Path, traffic: Traffic, injected: list[dict[str, str]]) -> None:
    content = asdict(traffic) | {"faults": injected}
    content["date"] = content.pop("day").isoformat()
    path = root / MANIFEST
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def manifest_rows(
    traffic: Traffic, window: Window, faults: FaultAssignment
) -> Iterator[dict[str, str]]:
    """Yield the faults for the manifest; of two reordered messages, the overtaking one."""
    for fault, positions in faults.at.items():
        for position in positions:
            faulty = faults.overtaken_by.get(position, position)
            route = int(window.route[position])
            row = {
                "id": _hex_id(traffic, window, faulty, unrecorded=fault in UNRECORDED),
                "gateway": traffic.gateway(window.gateway),
                "route": traffic.route(route),
                "target": traffic.targets(route)[0],
                "class": CLASSES[fault].value,
                "fault": fault.value,
                "minute": f"{moment(int(window.time[faulty])):%Y-%m-%dT%H:%MZ}",
            }
            if faulty != position:
                row["overtaken"] = _hex_id(traffic, window, position)
            yield row


def _hex_id(traffic: Traffic, window: Window, position: int, *, unrecorded: bool = False) -> str:
    start = gateway_start(traffic, window.gateway, unrecorded=unrecorded)
    number = int(window.number[position]) // traffic.gateways
    return (start.to_bytes(8, "big") + number.to_bytes(8, "big")).hex()

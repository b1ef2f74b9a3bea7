"""Node-RED as a relay: mqtt in, a function that changes the topic, mqtt out.

The program is taken from the variable NODE_RED or from PATH. After `npm install --prefix DIR
node-red` it is `DIR/node_modules/.bin/node-red`.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from gateway.trial.brokers.listening import free_port

SETTINGS = """\
module.exports = {
  uiHost: "127.0.0.1", uiPort: %d, httpAdminRoot: false, httpNodeRoot: false,
  flowFile: "flow.json", credentialSecret: false, logging: {console: {level: "error"}},
};
"""


def program() -> str | None:
    """Return the path of Node-RED; None when it is not installed."""
    return os.environ.get("NODE_RED") or shutil.which("node-red")


def command(folder: Path, source: int, target: int, qos: int) -> list[str]:
    """Return the command that starts Node-RED between two brokers on loopback.

    Raises:
        FileNotFoundError: Node-RED is not installed.
    """
    found = program()
    if found is None:
        raise FileNotFoundError("node-red: not found in PATH; set NODE_RED to the program")
    (folder / "settings.js").write_text(SETTINGS % free_port())
    (folder / "flow.json").write_text(json.dumps(flow(source, target, qos)))
    return [found, "--userDir", str(folder), "--settings", str(folder / "settings.js")]


def flow(source: int, target: int, qos: int) -> list[dict[str, object]]:
    broker = {"type": "mqtt-broker", "broker": "127.0.0.1", "protocolVersion": "4"}
    inside = {"z": "tab", "x": 0, "y": 0}
    return [
        {"id": "tab", "type": "tab", "label": "relay"},
        {**broker, "id": "from", "port": str(source), "clientid": "node-red-from"},
        {**broker, "id": "to", "port": str(target), "clientid": "node-red-to"},
        {
            **inside,
            "id": "in",
            "type": "mqtt in",
            "topic": "src/#",
            "qos": str(qos),
            "datatype": "buffer",
            "broker": "from",
            "wires": [["change"]],
        },
        {
            **inside,
            "id": "change",
            "type": "function",
            "func": 'msg.topic = "dst" + msg.topic.substring(3); msg.retain = false; return msg;',
            "outputs": 1,
            "wires": [["out"]],
        },
        {**inside, "id": "out", "type": "mqtt out", "qos": str(qos), "broker": "to", "wires": []},
    ]

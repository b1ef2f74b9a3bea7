"""The section `defaults` of a file: values for absent settings of its routes."""

from __future__ import annotations

import yaml

from gateway.config.hints import did_you_mean
from gateway.config.nodes import entries, key_faults, location_of
from gateway.config.place import Place
from gateway.config.value_reader import ConfigReader

DEFAULTS = ("route", "from", "to")


class RouteDefaults:
    """Default values for the routes of one file, as YAML nodes.

    `broken` is true when the section has findings: a route may lack what it would have given.
    Mutable: `read` sets the values.
    """

    def __init__(self) -> None:
        self.broken = False
        self._nodes: dict[str, yaml.MappingNode] = {}

    def read(self, place: Place, node: yaml.Node) -> None:
        """Note the values of the section, or report what is wrong with it."""
        reader, expected = place.reader, "expected a mapping of route, from and to"
        before = len(reader.findings)
        for key, value in reader.entries(node, place.at, expected) or ():
            if key.value in DEFAULTS and isinstance(value, yaml.MappingNode):
                reader.findings += key_faults(reader.path, value)  # of these `fill` keeps the first
                self._nodes[key.value] = value
                continue
            reason = f"defaults are mappings for route, from and to, not {key.value!r}"
            location = location_of(reader.path, key)
            hint = did_you_mean(key.value, DEFAULTS)
            reader.findings.append(location.error("unknown-field", reason, hint))
        self.broken = len(reader.findings) > before

    def fill(self, reader: ConfigReader, route: yaml.Node) -> yaml.Node:
        """Return the node of a route with the default values filled in; report its repeated keys.

        The filled node has only the first of them.
        """
        if not self._nodes or not isinstance(route, yaml.MappingNode):
            return route
        reader.findings += key_faults(reader.path, route)
        filled = _fill(route, self._nodes.get("route"))
        pairs = [
            (key, _fill_each(value, self._nodes.get(key.value))) for key, value in entries(filled)
        ]
        return yaml.MappingNode(route.tag, pairs, route.start_mark, route.end_mark)


def _fill_each(node: yaml.Node, defaults: yaml.MappingNode | None) -> yaml.Node:
    if isinstance(node, yaml.SequenceNode):
        items = [_fill_each(item, defaults) for item in node.value]
        return yaml.SequenceNode(node.tag, items, node.start_mark, node.end_mark)
    return _fill(node, defaults) if isinstance(node, yaml.MappingNode) else node


def _fill(node: yaml.MappingNode, defaults: yaml.MappingNode | None) -> yaml.MappingNode:
    """Return `node` with the entries of `defaults` that it lacks; duplicate keys are kept."""
    if defaults is None:
        return node
    own = {key.value for key, _ in entries(node)}
    missing = [pair for pair in entries(defaults) if pair[0].value not in own]
    return yaml.MappingNode(node.tag, [*node.value, *missing], node.start_mark, node.end_mark)

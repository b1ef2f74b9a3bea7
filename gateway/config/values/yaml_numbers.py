"""Numbers and truth values of YAML nodes."""

from __future__ import annotations

import yaml

from gateway.config.values.reference_values import REFERENCE

MAX_DIGITS = 400  # characters of a number; the largest float has 309
_YAML = yaml.constructor.SafeConstructor()


def may_be(node: yaml.Node, *tags: str) -> bool:
    """Return whether YAML reads `node` as one of `tags`, or it contains a reference."""
    return node.tag.rpartition(":")[2] in tags or REFERENCE.search(node.value) is not None


def parse_number(node: yaml.Node, text: str) -> int | float:
    """Parse a number as YAML does; `text` is the value of `node` with references resolved.

    Raises:
        ValueError: it is not a number.
        IndexError: it has the tag of a number and no digits.
    """
    if len(text) > MAX_DIGITS:
        raise ValueError(text[:MAX_DIGITS])
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":int"):
        return int(_YAML.construct_yaml_int(node))
    if not may_be(node, "float"):
        raise ValueError(text)
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":float"):
        return float(_YAML.construct_yaml_float(node))
    return float(text) if set(text) & set(".eE") else int(text)

"""A file, or parts of a Python file, as a block of code for a document that explains it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def source(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The file that is the first argument; of a Python file the definitions with these names.

    Raises:
        KeyError: the file has no such definition at its top level.
    """
    del lines
    path, *names = arguments
    text = (ROOT / path).read_text(encoding="utf-8").splitlines()
    if not names:
        return [f"```{path.rpartition('.')[2]}", *text, "```"]
    found = {}
    for node in ast.parse("\n".join(text)).body:
        for name in _names(node):
            first = min([node.lineno, *(each.lineno for each in _decorators(node))])
            found[name] = text[first - 1 : node.end_lineno]
    parts = [line for name in names for line in ("", "", *found[name])]
    return ["```python", *parts[2:], "```"]


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, ast.ClassDef | ast.FunctionDef) else []

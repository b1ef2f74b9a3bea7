"""A class has one name, and a name is one class: whoever reads it need not ask which."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import gateway

FOLDER = Path(gateway.__file__).parent


def test_no_two_classes_have_one_name() -> None:
    names = Counter(
        node.name
        for file in FOLDER.rglob("*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )

    assert [name for name, count in names.items() if count > 1] == []

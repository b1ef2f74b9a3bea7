"""A printed output stands for the outputs that it says, and for no other."""

from __future__ import annotations

import pytest

from tests.tutorials.steps import SavedFile, TypedCommand, is_as_printed, steps_of

PAGE = """\
# Title

Save this as `etc/a.yaml`:

```yaml
a: 1
```

```console
$ one
first
…
$ two &
```

```sh
not typed
```
"""
CASES = [
    pytest.param("", "", True, id="silent"),
    pytest.param("error\n", "", False, id="not silent"),
    pytest.param("a  \nb\n", "a\nb\n", True, id="blanks at the end"),
    pytest.param("  a\n", "a\n", False, id="blanks at the beginning"),
    pytest.param("up 3 s, x\n", "up … s, x\n", True, id="within a line"),
    pytest.param("up 3\n s, x\n", "up … s, x\n", False, id="over two lines"),
    pytest.param("a\nb\nc\nd\n", "a\n…\nd\n", True, id="any lines"),
    pytest.param("a\nd\n", "a\n…\nd\n", True, id="no lines"),
    pytest.param("a\nd\ne\n", "a\n…\nd\n", False, id="a line too many"),
    pytest.param("a.b*\n", "a.b*\n", True, id="no pattern"),
    pytest.param("axb\n", "a.b\n", False, id="a dot is a dot"),
]


@pytest.mark.parametrize(("output", "printed", "expected"), CASES)
def test_output(output: str, printed: str, expected: bool) -> None:
    assert is_as_printed(output, printed) == expected


def test_steps_are_in_the_order_of_the_page() -> None:
    assert list(steps_of(PAGE)) == [
        SavedFile("etc/a.yaml", "a: 1\n"),
        TypedCommand("one", "first\n…\n"),
        TypedCommand("two &", ""),
    ]

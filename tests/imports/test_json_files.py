from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError
from gateway.imports.json_files import read_json

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    whole=st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    indent=st.sampled_from([None, 0, 2]),
)
def test_every_entry_is_read_in_its_place(whole: dict[str, object], indent: int | None) -> None:
    text = json.dumps(whole, indent=indent)

    found = read_json("f", text.encode())

    wanted = [
        (section, each)
        for section, value in whole.items()
        for each in (value if isinstance(value, list) else [value])
    ]
    assert [(each.section, each.value) for each in found] == wanted
    lines = text.split("\n")
    for each in found:
        shown = json.dumps(each.value, indent=indent).split("\n")[0].rstrip("}]")
        assert shown in lines[each.location.line - 1]


@given(data=st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_json("f", data)
    except GatewayError as error:
        assert str(error).startswith("f:")  # noqa: PT017  # most of them are refused


REFUSED = [
    pytest.param(b"[]", "f: the file is no object of JSON", id="list"),
    pytest.param(b'{"a": 1,\n}', "f:2:1: the file is not JSON: ", id="comma"),
    pytest.param(b"\xff", "f: the file is not UTF-8", id="encoding"),
    pytest.param(b'{"a": ' + b"[" * 100_000, "f: the lists and objects are nested", id="deep"),
    pytest.param(b'{"a": ' + b"1" * 5_000 + b"}", "f: the file is not JSON: ", id="number"),
]


@pytest.mark.parametrize(("data", "reason"), REFUSED)
def test_a_file_that_is_no_object_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(GatewayError, match=reason.replace("(", r"\(")):
        read_json("f", data)

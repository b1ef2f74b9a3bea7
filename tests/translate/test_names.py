from __future__ import annotations

from collections.abc import Sequence
from sys import maxsize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.brokers import with_limits
from gateway.dialects.dialect import Dialect
from gateway.dialects.escape import Codec
from gateway.dialects.name_limits import NameLimits
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError, LimitError, SubjectError, TranslationError
from gateway.model.subject import Subject
from gateway.translate import shorten
from gateway.translate.names import OnTooLong, OnUnmappable, Renderer, Translator
from gateway.translate.shorten import LOOKS_SHORTENED, ShortNamesInMemory, digest_of
from tests.model.test_memory_size import taken
from tests.strategies import names
from tests.systems import SYSTEMS, legal_name

MATRIX = [
    ("mqtt", "ems", "factory/line 1/temp", "factory.line 1.temp"),
    ("mqtt", "ems", "v1.2/status", "v1%2E2.status"),
    ("mqtt", "ems", "a//b/", "a.%-.b.%-"),
    ("mqtt", "ems", "$SYS/broker/load", "%24SYS.broker.load"),
    ("mqtt", "smf", "$SYS/broker/load", "$SYS/broker/load"),
    ("mqtt", "ibm", "$SYS/broker/load", "%24SYS/broker/load"),
    ("mqtt", "yami4", "a,b/c", "a%2Cb.c"),
    ("mqtt", "rv", "_RV/INFO", "%5FRV.INFO"),
    ("ems", "smartsockets", "foo.bar.baz", "/foo/bar/baz"),
    ("ems", "smartsockets", "foo/bar.baz", "/foo.bar/baz"),
    ("ems", "mqtt", "foo/bar.baz", "foo%2Fbar/baz"),
    ("ems", "mqtt", "C#.a+b", "C%23/a%2Bb"),
    ("ems", "rv", "_x.y", "%5Fx.y"),
    ("ems", "smf", "#P2P.x", "%23P2P/x"),
    ("rv", "ems", "_INBOX.C0A80001.7", "_INBOX.C0A80001.7"),
    ("ibm", "mqtt", "level0/#+/level4/level#", "level0/%23%2B/level4/level%23"),
    ("ibm", "mqtt", "$price/x", "%24price/x"),
    ("smf", "ems", "animals/*/>", "animals.%2A.%3E"),
    ("smf", "ibm", "a/+/b", "a/%2B/b"),
    ("yami4", "ems", "a..b*", "a.%-.b%2A"),
    ("yami4", "mqtt", "temperature", "temperature"),
    ("smartsockets", "ems", "/a/....", "a.////"),
]

REFUSED: list[tuple[str, str, str, type[Exception], str]] = [
    ("ems", "mqtt", "$sys.monitor.x", SubjectError, "reserved"),
    ("ems", "mqtt", "a..b", SubjectError, "empty-element"),
    ("rv", "mqtt", "_LOCAL.a", SubjectError, "local"),
    ("smf", "mqtt", "a/#P2P", SubjectError, "inbox"),
    ("ibm", "smf", "a/%23P2P", TranslationError, "inbox"),
    ("ibm", "ems", "$sys/x", TranslationError, "reserved"),
    ("yami4", "mqtt", "", TranslationError, "empty-name"),
    ("yami4", "mqtt", "a,b", TranslationError, "tag-list"),
    ("mqtt", "smf", "é" * 126, LimitError, "too-long"),
    ("mqtt", "ems", "/".join("a" * 65), LimitError, "too-deep"),
    ("mqtt", "ems", "n" * 128, LimitError, "level-too-long"),
]


@pytest.mark.parametrize(("source", "target", "name", "made"), MATRIX)
def test_a_name_becomes(source: str, target: str, name: str, made: str) -> None:
    assert Translator(DIALECTS[source], Renderer(DIALECTS[target])).name(name) == made
    assert Translator(DIALECTS[target], Renderer(DIALECTS[source])).name(made) == name


@pytest.mark.parametrize(("source", "target", "name", "error", "rule"), REFUSED)
def test_a_name_is_refused(
    source: str,
    target: str,
    name: str,
    error: type[Exception],
    rule: str,
) -> None:
    with pytest.raises((SubjectError, TranslationError)) as caught:
        Translator(DIALECTS[source], Renderer(DIALECTS[target])).name(name)

    assert isinstance(caught.value, error)
    assert getattr(caught.value, "rule", "") == rule


def test_a_refusal_states_the_size_and_the_limit() -> None:
    with pytest.raises(LimitError, match=r"smf: 'é.* is 252 bytes, limit 250"):
        Translator(DIALECTS["mqtt"], Renderer(DIALECTS["smf"])).name("é" * 126)


def test_each_distinct_tag_of_a_list_becomes_one_name() -> None:
    translator = Translator(DIALECTS["yami4"], Renderer(DIALECTS["mqtt"]))

    assert translator.names("a.b,c,a.b") == ("a/b", "c")


def test_names_for_replies_are_translated_in_both_directions() -> None:
    ems, mqtt = DIALECTS["ems"], DIALECTS["mqtt"]
    made = Translator(ems, Renderer(mqtt, replies=True)).name("$TMP$.EMS.1")

    assert made == "%24TMP$/EMS/1"
    assert Translator(mqtt, Renderer(ems, replies=True)).name(made) == "$TMP$.EMS.1"
    with pytest.raises(TranslationError, match="belong to the system"):
        Translator(mqtt, Renderer(ems)).name(made)


def test_the_cache_is_bounded() -> None:
    translator = Translator(DIALECTS["mqtt"], Renderer(DIALECTS["ems"]), max_cache_size=4_000)

    assert [translator.name(f"a/{number}") for number in range(100)] == [
        f"a.{number}" for number in range(100)
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("a.b/c", "'.'"), ("a//b", "''"), ("$SYS/a", r"'\$'"), ("a%2Eb", "'%2E'")],
)
def test_reject_refuses_what_would_be_escaped(name: str, reason: str) -> None:
    translator = Translator(
        DIALECTS["mqtt"], Renderer(DIALECTS["ems"], on_unmappable=OnUnmappable.REJECT)
    )

    assert translator.name("a/b%") == "a.b%"
    with pytest.raises(TranslationError, match=reason) as caught:
        translator.name(name)
    assert caught.value.rule == "unspellable"


@pytest.mark.parametrize(
    ("source", "target", "name", "made"),
    [
        ("mqtt", "ems", "a.b//c*", "a-b.-.c-"),
        ("mqtt", "ems", "$SYS/a", "-SYS.a"),
        ("mqtt", "rv", "_RV/a", "-RV.a"),
        ("rv", "ems", "$SYS%2A.x", "%2524SYS-.x"),
        ("ems", "ibm", "+.#a", "-/#a"),
        ("ems", "smf", "#P2P.a", "-P2P/a"),
        ("ems", "smartsockets", "foo/bar.baz", "/foo.bar/baz"),
    ],
)
def test_replace_writes_one_character_for_each_unspellable_one(
    source: str, target: str, name: str, made: str
) -> None:
    translator = Translator(
        DIALECTS[source], Renderer(DIALECTS[target], on_unmappable=OnUnmappable.REPLACE)
    )

    assert translator.name(name) == made


@pytest.mark.parametrize("target", SYSTEMS)
@given(data=st.data())
def test_a_replaced_name_is_legal(target: str, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([system for system in SYSTEMS if system != target]))
    translator = Translator(
        DIALECTS[source], Renderer(DIALECTS[target], on_unmappable=OnUnmappable.REPLACE)
    )
    name = data.draw(names(source))
    try:
        made = translator.name(name)
    except (SubjectError, TranslationError):
        return
    assert legal_name(target, made, made=True)


@pytest.mark.parametrize("char", ["/", "."])
def test_a_replacement_never_separates_levels_of_smartsockets(char: str) -> None:
    """A slash is an ordinary character of the canonical form, and the separator there."""
    with pytest.raises(GatewayError, match="cannot stand for other characters"):
        Renderer(DIALECTS["smartsockets"], OnUnmappable.REPLACE, replacement=char)


@pytest.mark.parametrize("char", ["", "ab", ".", "*", "\ud800"])
def test_an_unspellable_replacement_is_refused(char: str) -> None:
    with pytest.raises(GatewayError, match="cannot stand for other characters"):
        Renderer(DIALECTS["ems"], replacement=char)


def test_a_long_name_is_shortened_and_resolved() -> None:
    dictionary = ShortNamesInMemory()
    mqtt, smf = DIALECTS["mqtt"], DIALECTS["smf"]
    there = Translator(mqtt, Renderer(smf, on_too_long=OnTooLong.SHORTEN, dictionary=dictionary))
    back = Translator(smf, Renderer(mqtt, on_too_long=OnTooLong.SHORTEN, dictionary=dictionary))
    name = "plant/line7/" + "x" * 250

    made = there.name(name)

    assert made.startswith("plant/line7/~")
    assert len(made) == len("plant/line7/") + 27
    assert dictionary.recall(made.rpartition("/")[2]) == tuple(name.split("/"))
    assert back.name(made) == name
    assert there.name("plant/line7") == "plant/line7"


def test_a_digest_that_the_dictionary_does_not_contain_is_refused() -> None:
    translator = Translator(
        DIALECTS["smf"], Renderer(DIALECTS["mqtt"], on_too_long=OnTooLong.SHORTEN)
    )

    with pytest.raises(TranslationError, match="the dictionary does not contain"):
        translator.name("a/~" + "a" * 26)


def test_a_subject_that_looks_like_a_short_name_is_marked() -> None:
    renderer = Renderer(DIALECTS["mqtt"], on_too_long=OnTooLong.SHORTEN)
    looks = "~" + "a" * 26

    assert renderer.render(Subject(("a", looks))) == f"a/~{looks}"
    assert renderer.render(Subject((looks, "a"))) == f"{looks}/a"


@given(st.lists(st.text("ab~", max_size=12).map(lambda text: text * 12), min_size=1, max_size=70))
def test_short_names_fit_and_remain_distinct(levels: list[str]) -> None:
    dictionary = ShortNamesInMemory()
    renderer = Renderer(DIALECTS["ems"], on_too_long=OnTooLong.SHORTEN, dictionary=dictionary)
    made = renderer.render(Subject(tuple(levels)))

    assert legal_name("ems", made, made=True)
    last = made.rpartition(".")[2]
    if LOOKS_SHORTENED.fullmatch(last) and not last.startswith("~~"):
        assert dictionary.recall(last) == tuple(levels)


FAR_TOO_LONG = [
    pytest.param(("a", "n" * 60_000), id="one-level"),
    pytest.param(("n" * 60_000, "a"), id="first-level"),
    pytest.param(("a", *["n"] * 30_000), id="deep"),
    pytest.param(("a", *[""] * 30_000), id="empty-levels"),
    pytest.param(("a", *["*"] * 30_000), id="escaped-levels"),
    pytest.param(("a.b", "." * 60_000), id="escaped-characters"),
    pytest.param(("é" * 20, "é" * 20_000), id="not-ascii"),
]


@pytest.mark.parametrize("system", ["ems", "smf"])
@pytest.mark.parametrize("levels", FAR_TOO_LONG)
def test_no_more_of_a_far_too_long_name_is_spelled_than_can_fit(
    system: str, levels: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect, spelled = DIALECTS[system], list[int]()
    encode = Codec.encode

    def counted(codec: Codec, parts: Sequence[str]) -> list[str]:
        spelled.append(len(parts) + sum(map(len, parts)))
        return encode(codec, parts)

    monkeypatch.setattr(Codec, "encode", counted)
    made = Renderer(dialect, on_too_long=OnTooLong.SHORTEN).render(Subject(levels))
    with pytest.raises(LimitError):
        Renderer(dialect).render(Subject(levels))

    assert spelled
    assert sum(spelled) <= 2 * dialect.largest_size
    with monkeypatch.context() as whole:  # as if every character were spelled
        whole.setattr(Dialect, "largest_size", maxsize)
        assert made == Renderer(dialect, on_too_long=OnTooLong.SHORTEN).render(Subject(levels))


@given(
    st.lists(st.text("a\0", max_size=2), min_size=31, max_size=35),
    st.lists(st.text("a\0", max_size=2), min_size=31, max_size=35),
)
def test_different_names_have_different_digests(one: list[str], other: list[str]) -> None:
    assert (digest_of(one) == digest_of(other)) == (one == other)


def test_a_limit_too_small_for_a_digest_refuses() -> None:
    tiny = with_limits(DIALECTS["mqtt"], NameLimits(bytes=20))

    with pytest.raises(LimitError):
        Renderer(tiny, on_too_long=OnTooLong.SHORTEN).render(Subject(("x" * 30,)))


def test_the_names_in_memory_take_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shorten, "MAX_SIZE", 1 << 20)

    def fill() -> ShortNamesInMemory:
        names = ShortNamesInMemory()
        for number in range(200):
            names.remember(f"~{number}", ("x" * 60_000 + f"{number}",))
        return names

    assert taken(fill) < 1 << 20
    assert fill().recall("~199")


def test_the_cached_translations_take_limited_memory() -> None:
    def fill() -> Translator:
        translator = Translator(
            DIALECTS["mqtt"], Renderer(DIALECTS["yami4"]), max_cache_size=1 << 20
        )
        for number in range(100):
            translator.name("x" * 60_000 + f"/{number}")
        return translator

    assert taken(fill) < (1 << 20) + 200_000  # the translator itself

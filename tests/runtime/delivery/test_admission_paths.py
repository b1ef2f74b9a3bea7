"""Admission by origin path: every copy goes on, is cut with a row, or becomes a dead letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.dialects.registry import find_dialect
from gateway.endpoints.base import Batch
from gateway.model.copy_proof import HOPS, SourceMark, content_digest, render_proof
from gateway.model.message import GATEWAY_ID, Headers, Message
from gateway.routing.origin_path import BrokerName, GatewayIdentity
from gateway.runtime.delivery.admission import Admission, AdmissionRules, never
from gateway.runtime.delivery.copy_paths import DEFAULT_RULES, PathRules
from gateway.runtime.delivery.duplicates import DuplicateFilter, SettledBatch
from gateway.runtime.delivery.earlier_batch import ConnectionPart, EarlierBatch
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.wiring import make_source_binding
from tests.runtime.received_batches import received_batch
from tests.runtime.test_pump import OneBatchSource

TWO_TARGETS = """\
gateway: {name: test}
endpoints:
  here: {kind: memory, dialect: mqtt, broker_id: here}
  work: {kind: memory, dialect: mqtt, broker_id: work}
  audit: {kind: memory, dialect: mqtt, broker_id: audit}
routes:
  all:
    from: {endpoint: here, pattern: "a/{rest...}"SELECTOR}
    to:
      - {endpoint: work, template: "b/{rest...}"}
      - {endpoint: audit, template: "c/{rest...}"}
"""
US, OTHERS = GatewayIdentity("test", "1" * 32), GatewayIdentity("test", "2" * 32)
FIRST, LAST = "f" * 32, "e" * 32
WORK = US.mark(BrokerName("work"), "b/1", find_dialect("mqtt"))
HERE = US.mark(BrokerName("here"), "a/1", find_dialect("mqtt"))  # the name is back where it was
OF_EARLIER_RUN = SettledBatch()
ROUND = (OTHERS.entry("x"),)  # a path that is not a reason to cut


@dataclass(frozen=True)
class Outcome:
    """The outcomes of one message, by target."""

    sent: Sequence[str]
    cut: Sequence[tuple[str, str]]  # target and rule
    dead: Sequence[tuple[str, str]]
    redelivered: bool
    origin: Sequence[str]


@dataclass
class Source:
    """The admission of one source. Mutable: it remembers what came before."""

    folder: Path
    removes: Callable[[str], bool] = never
    selector: str = ""
    path_rules: PathRules = DEFAULT_RULES

    def __post_init__(self) -> None:
        file = self.folder / "gateway.yaml"
        file.write_text(TWO_TARGETS.replace("SELECTOR", self.selector))
        binding = make_source_binding(load(file), "here", OneBatchSource(), identity=US)
        self.rules: AdmissionRules = replace(binding.rules, removes=self.removes)
        take_origin = EchoCache().take_origin
        self.admission = Admission(US, DuplicateFilter(), take_origin, self.path_rules)

    def admit(self, message: Message, known_as: EarlierBatch = OF_EARLIER_RUN) -> Outcome:
        batch = received_batch([message])
        self.admission.recognise(batch, self.rules, known_as)
        self.admission.match(batch, self.rules)
        deliveries = [each for match in batch.matches[0] for each in match.deliveries]
        return Outcome(
            [each.label for each in deliveries if not each.rule],
            [(each.target, each.rule) for each in batch.cuts],
            [(each.label, each.rule) for each in deliveries if each.rule],
            batch.messages[0].headers.redelivered,
            batch.messages[0].headers.origin,
        )

    def wire(self, name: str) -> bytes:
        return self.rules.router.wire_names[name]


def proof_of(source: Source, rules: PathRules, headers: Headers, *, last: str = LAST) -> str:
    """The proof of a copy that a gateway with these rules sends to `a/1`."""
    name, payload_hash = source.wire("a/1"), fingerprint(b"on")[1]
    proof = render_proof((FIRST, last, HOPS[1], content_digest(name + payload_hash)))
    return rules.sign(proof, name, payload_hash, headers)


def copy(source: Source, origin: Sequence[str], *, hops: int = 1, first: str = FIRST) -> Message:
    """A copy as another gateway sends it to `a/1`."""
    digest = content_digest(source.wire("a/1") + fingerprint(b"on")[1])
    proof = render_proof((first, LAST, HOPS[hops], digest))
    return Message("a/1", b"on", Headers(origin=(*origin,)), proof)


BOTH = ["work", "audit"]


def test_a_copy_of_our_own_is_cut_for_each_target(tmp_path: Path) -> None:
    source = Source(tmp_path)

    found = source.admit(copy(source, [HERE]))

    assert found.sent == []
    assert found.cut == [("work", "loop"), ("audit", "loop")]


def test_one_target_that_had_the_message_is_cut_and_the_other_one_gets_it(tmp_path: Path) -> None:
    source = Source(tmp_path)

    found = source.admit(copy(source, [WORK, OTHERS.entry("all")]))

    assert found.sent == ["audit"]
    assert found.cut == [("work", "loop")]


DERIVED = [
    pytest.param({"payload": b"off"}, id="payload"),
    pytest.param({"address": "a/2"}, id="name"),
    pytest.param({"proof": ""}, id="without-a-proof"),
    pytest.param({"proof": "x" * 101}, id="no-proof"),
]


@pytest.mark.parametrize("changed", DERIVED)
@pytest.mark.parametrize("path", [HERE, WORK])
def test_a_message_that_is_no_copy_begins_a_new_path(
    tmp_path: Path, changed: dict[str, object], path: str
) -> None:
    source = Source(tmp_path)

    found = source.admit(replace(copy(source, [path]), **changed))  # type: ignore[arg-type]  # fields

    assert (found.sent, found.cut, list(found.origin)) == (BOTH, [], [])


def test_the_marks_of_the_source_outlive_a_refused_path(tmp_path: Path) -> None:
    source = Source(tmp_path)
    mark = SourceMark("~imported/1")

    derived = replace(copy(source, [HERE, mark]), payload=b"off")

    assert source.admit(derived).origin == (mark,)


def test_a_mark_of_a_source_that_travelled_is_a_word_like_any_other(tmp_path: Path) -> None:
    source = Source(tmp_path)

    derived = replace(copy(source, ["~imported/1"]), payload=b"off")

    assert source.admit(derived).origin == ()


@pytest.mark.parametrize(
    ("hops", "limit", "ends"),
    [(7, 8, False), (8, 8, True), (255, 8, True), (255, 0, False), (1, 1, True)],
)
@pytest.mark.parametrize("payload", [b"on", b"derived"])
def test_hops_end_a_message_proven_or_not(
    tmp_path: Path, hops: int, limit: int, payload: bytes, *, ends: bool
) -> None:
    source = Source(tmp_path, path_rules=PathRules(limit))

    found = source.admit(replace(copy(source, ROUND, hops=hops), payload=payload))

    assert found.dead == ([(each, "hops") for each in BOTH] if ends else [])
    assert found.sent == ([] if ends else BOTH)


def test_one_original_is_taken_once_by_whatever_way_it_comes(tmp_path: Path) -> None:
    source = Source(tmp_path)
    assert source.admit(copy(source, ROUND)).sent == BOTH

    again = source.admit(copy(source, [OTHERS.entry("y")], hops=2))
    another = source.admit(copy(source, ROUND, first="d" * 32))

    assert again.cut == [("work", "duplicate"), ("audit", "duplicate")]
    assert another.sent == BOTH


def test_a_copy_that_carries_its_first_id_as_its_gateway_id_is_no_duplicate_of_itself(
    tmp_path: Path,
) -> None:
    source = Source(tmp_path)
    message = copy(source, ROUND)
    carried = replace(message.headers, properties={GATEWAY_ID: FIRST})

    assert source.admit(replace(message, headers=carried)).sent == BOTH


def test_the_first_id_of_a_message_that_is_no_copy_drops_nothing(tmp_path: Path) -> None:
    source = Source(tmp_path)
    derived = replace(copy(source, ROUND), payload=b"derived")

    assert [source.admit(each).sent for each in (derived, derived)] == [BOTH, BOTH]


def test_at_a_source_that_removes_a_loop_is_a_dead_letter(tmp_path: Path) -> None:
    source = Source(tmp_path, removes=lambda name: name == "a/1")

    found = source.admit(copy(source, [HERE]))
    part = source.admit(copy(source, [WORK, OTHERS.entry("all")]))

    assert found.dead == [("work", "loop"), ("audit", "loop")]
    assert (part.sent, part.dead) == (["audit"], [("work", "loop")])


@pytest.mark.parametrize(
    ("removes", "cut", "dead"),
    [
        pytest.param(never, [(each, "unselected") for each in BOTH], [], id="leaves"),
        pytest.param(lambda _: True, [], [(each, "unselected") for each in BOTH], id="removes"),
    ],
)
def test_a_message_that_no_selector_takes_has_a_row(
    tmp_path: Path,
    removes: Callable[[str], bool],
    cut: Sequence[tuple[str, str]],
    dead: Sequence[tuple[str, str]],
) -> None:
    source = Source(tmp_path, removes, ', selector: "n = 1"')

    found = source.admit(Message("a/1", b"on"))

    assert (found.sent, found.cut, found.dead) == ([], cut, dead)


def test_a_name_that_no_route_takes_is_a_dead_letter_where_the_source_removes(
    tmp_path: Path,
) -> None:
    source = Source(tmp_path, lambda _: True)

    assert source.admit(Message("z", b"")).dead == [("", "no-route")]
    assert Source(tmp_path).admit(Message("z", b"")).dead == []


@pytest.mark.parametrize("redelivered", [False, True])
def test_an_equal_message_in_a_queue_is_a_duplicate_only_if_its_broker_says_so(
    tmp_path: Path, *, redelivered: bool
) -> None:
    source = Source(tmp_path, lambda _: True)
    message = Message("a/1", b"on", Headers(source_id="ID:1"))
    source.admit(message)

    headers = replace(message.headers, redelivered=redelivered)
    found = source.admit(replace(message, headers=headers))

    assert found.sent == ([] if redelivered else BOTH)
    assert found.cut == ([(each, "duplicate") for each in BOTH] if redelivered else [])
    assert found.redelivered


def batch_of(number: int, *, after_silence: bool = False) -> InFlightBatch:
    batch, part = Batch([], lambda _: None), ConnectionPart(number, after_silence)
    return InFlightBatch(batch, received_batch([]), BatchRecorder({}), part=part)


@pytest.mark.parametrize(
    ("settled", "connection", "sent"), [(True, 1, BOTH), (False, 1, []), (True, 2, [])]
)
def test_what_was_settled_over_a_connection_does_not_come_again_over_it(
    tmp_path: Path, *, settled: bool, connection: int, sent: Sequence[str]
) -> None:
    """Another reader of the queue had a copy with its ids, and returned it."""
    source, earlier = Source(tmp_path, lambda _: True), batch_of(1)
    message = Message("a/1", b"on", Headers(source_id="ID:1"))
    source.admit(message, earlier)
    if settled:
        earlier.relayed((), 0)
    again = replace(message, headers=replace(message.headers, redelivered=True))

    found = source.admit(again, batch_of(connection))

    assert (found.sent, found.redelivered) == (sent, True)


@pytest.mark.parametrize("settled", [True, False])
def test_what_comes_after_a_silence_is_no_redelivery_of_an_earlier_connection(
    tmp_path: Path, *, settled: bool
) -> None:
    source, earlier = Source(tmp_path, lambda _: True), batch_of(1)
    message = Message("a/1", b"on", Headers(source_id="ID:1"))
    source.admit(message, earlier)
    if settled:
        earlier.relayed((), 0)
    again = replace(message, headers=replace(message.headers, redelivered=True))

    assert source.admit(again, batch_of(2, after_silence=True)).sent == (BOTH if settled else [])


def test_what_comes_after_a_silence_is_no_redelivery_of_an_earlier_run(tmp_path: Path) -> None:
    source = Source(tmp_path, lambda _: True)
    message = Message("a/1", b"on", Headers(source_id="ID:1"))
    source.admit(message)
    again = replace(message, headers=replace(message.headers, redelivered=True))

    assert source.admit(again, batch_of(1)).sent == []
    assert source.admit(again, batch_of(1, after_silence=True)).sent == BOTH


def test_a_copy_that_went_on_is_the_one_that_comes_again(tmp_path: Path) -> None:
    """Its redelivery waits for it, and not for the copy that was settled before."""
    source, first, second = Source(tmp_path, lambda _: True), batch_of(1), batch_of(1)
    message = Message("a/1", b"on", Headers(source_id="ID:1"))
    source.admit(message, first)
    first.relayed((), 0)
    source.admit(message, second)
    again = replace(message, headers=replace(message.headers, redelivered=True))
    batch = received_batch([again])

    source.admission.recognise(batch, source.rules, batch_of(2))

    assert batch.earlier == {0: second}


@pytest.mark.parametrize(("last", "sent"), [(LAST, []), ("d" * 32, BOTH)], ids=["same", "other"])
def test_two_copies_in_a_queue_are_told_by_their_proofs(
    tmp_path: Path, last: str, sent: Sequence[str]
) -> None:
    """The broker delivers the second one again, because the gateway has not settled it."""
    source = Source(tmp_path, lambda _: True)
    first = copy(source, ROUND)
    source.admit(first)

    headers = replace(first.headers, redelivered=True)
    found = source.admit(replace(first, headers=headers, proof=first.proof.replace(LAST, last)))

    assert (found.sent, found.redelivered) == (sent, True)


def test_a_signed_path_is_told_from_one_that_anybody_can_write(tmp_path: Path) -> None:
    keyed = PathRules(keys=(b"new", b"old"))
    source = Source(tmp_path, path_rules=keyed)
    headers = Headers(origin=(HERE,))
    proofs = {
        name: proof_of(source, rules, headers)
        for name, rules in {
            "signed": keyed, "before": PathRules(keys=(b"old",)), "plain": PathRules(),
            "another key": PathRules(keys=(b"x",)),
        }.items()
    }  # fmt: skip

    batch = received_batch([Message("a/1", b"on", headers, each) for each in proofs.values()])
    source.admission.recognise(batch, source.rules, SettledBatch())
    source.admission.match(batch, source.rules)

    cut = {
        name: [each.signed for each in batch.cuts if each.position == at]
        for at, name in enumerate(proofs)
    }
    assert cut == {
        "signed": [True, True], "before": [True, True],
        "plain": [False, False], "another key": [False, False],
    }  # fmt: skip


def test_a_message_that_a_selector_left_out_was_not_taken(tmp_path: Path) -> None:
    """An application adds the property that the route waits for, and copies the others."""
    source = Source(tmp_path, selector=", selector: \"status = 'approved'\"")
    asked = copy(source, ROUND)
    approved = replace(asked.headers, properties={"status": "approved"})

    found = [source.admit(each) for each in (asked, replace(asked, headers=approved))]

    assert [each.sent for each in found] == [[], BOTH]


@pytest.mark.parametrize("signed", [False, True])
def test_with_a_key_only_a_signed_path_says_what_was_taken(tmp_path: Path, *, signed: bool) -> None:
    keyed = PathRules(keys=(b"key",))
    source = Source(tmp_path, path_rules=keyed)
    rules = keyed if signed else DEFAULT_RULES
    headers = Headers(origin=ROUND)
    proofs = [proof_of(source, rules, headers, last=last * 32) for last in "de"]

    found = [source.admit(Message("a/1", b"on", headers, each)) for each in proofs]

    assert [each.sent for each in found] == [BOTH, [] if signed else BOTH]

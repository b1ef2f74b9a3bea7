"""A consumer group that a source left at its servers: what waits for it, and its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # it states no exports

from gateway.endpoints.kafka.client import ClientFaults, client_options, connect, refusal
from gateway.endpoints.made import ABSENT, Held, Made
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.errors import EndpointError
from gateway.untyped import Untyped

T = TypeVar("T")


def count_held(settings: KafkaSettings, made: Made) -> Held:
    """Count the messages behind the commits of the group."""

    def count(admin: Untyped) -> Held:
        timeout = settings.answer_timeout
        asked = [ConsumerGroupTopicPartitions(made.name)]
        found = admin.list_consumer_group_offsets(asked, request_timeout=timeout)
        committed = [
            each for each in found[made.name].result().topic_partitions if each.offset >= 0
        ]
        if not committed:
            return ABSENT
        wanted = dict.fromkeys(committed, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # the library's
        ends = admin.list_offsets(wanted, request_timeout=timeout)
        return Held(sum(max(0, ends[each].result().offset - each.offset) for each in committed))

    return _ask(settings, count)


def end_made(settings: KafkaSettings, made: Made) -> None:
    """Delete the group with its commits; its topics stay."""

    def delete(admin: Untyped) -> None:
        asked = [made.name]
        found = admin.delete_consumer_groups(asked, request_timeout=settings.answer_timeout)
        try:
            found[made.name].result()
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.NON_EMPTY_GROUP:
                hint = f"it has a member, or had one in the last {settings.session_timeout:g} s"
                raise EndpointError(f"{settings.name}: group {made.name!r}: {hint}") from error
            if code != KafkaError.GROUP_ID_NOT_FOUND:
                raise

    _ask(settings, delete)


def _ask(settings: KafkaSettings, question: Callable[[Any], T]) -> T:
    faults = ClientFaults(settings.name)
    admin = AdminClient(client_options(settings, "", faults))
    connect(admin, settings, faults)
    try:
        return question(admin)
    except KafkaException as error:
        raise refusal(settings, error.args[0]) from error

"""The Solace endpoint against the gateway's broker and, with a Docker engine, the vendor's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from time import monotonic
from uuid import uuid4

import pytest

pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace import SolaceSource, open_sink, open_source
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY
from tests.brokers.controlled_smf import SmfBroker
from tests.endpoints.docker_images import provide_images
from tests.endpoints.exchange import QUIET, collect, opened, receive, send

IMAGE = "solace/solace-pubsub-standard:latest"
START_TIMEOUT = 180.0  # seconds; the vendor's broker takes a minute or two


@pytest.fixture(scope="module", params=["gateway", "vendor"])
def settings(request: pytest.FixtureRequest) -> Iterator[SolaceSettings]:
    if request.param == "gateway":
        with SmfBroker() as broker:
            yield SolaceSettings(url=broker.url, connect_timeout=5.0)
    else:
        yield from run_container()


def run_container() -> Iterator[SolaceSettings]:
    if not has_docker():
        pytest.skip("no Docker engine answers: cannot start the vendor's broker")
    from testcontainers.core.config import testcontainers_config  # noqa: PLC0415
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415
    from testcontainers.core.docker_client import DockerClient  # noqa: PLC0415

    helpers = () if testcontainers_config.ryuk_disabled else (testcontainers_config.ryuk_image,)
    provide_images(lambda: DockerClient().client.images, IMAGE, *helpers)
    container = (
        DockerContainer(IMAGE)
        .with_env("username_admin_globalaccesslevel", "admin")
        .with_env("username_admin_password", uuid4().hex)
        .with_exposed_ports(55555)
        .with_kwargs(shm_size="1g", ulimits=[])
    )
    with container:
        url = f"tcp://{container.get_container_host_ip()}:{container.get_exposed_port(55555)}"
        found = SolaceSettings(url=url, username="default", connect_timeout=5.0)
        wait_until_it_serves(found)
        yield found


def has_docker() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    result = subprocess.run([docker, "info"], capture_output=True, check=False)  # noqa: S603
    return result.returncode == 0


def wait_until_it_serves(settings: SolaceSettings) -> None:
    deadline = monotonic() + START_TIMEOUT
    pause = Event()
    while True:
        try:
            with opened(open_sink(settings)):
                return
        except NotConnectedError:
            assert monotonic() < deadline, "the vendor's broker does not start"
            pause.wait(1.0)


def source_of(settings: SolaceSettings, pattern: str, **changes: bool) -> SolaceSource:
    return open_source(
        replace(settings, **changes),  # type: ignore[arg-type]  # by name
        [Subscription(pattern)],
        instance=uuid4().hex,
    )


def test_guaranteed_messages_keep_headers_and_payloads(settings: SolaceSettings) -> None:
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE,
        priority=7,
        expiry=4_102_444_800_000_000,
        time=1_700_000_000_000_000,
        correlation_id="c",
        reply_to="answers/here",
        source_id="id",
        properties={"n": 1, "b": b"\0\1", "m": {"x": [True, None]}},
    )
    messages = [Message("t/a", payload, headers) for payload in (b"\0x", "text", {"k": b"\0"}, b"")]
    source = source_of(settings, "t/>")
    with opened(source, sink := open_sink(settings)):
        assert send(sink, *messages) == [ACCEPTED] * 4
        assert collect(source, 4) == messages


def test_direct_messages_cross(settings: SolaceSettings) -> None:
    source = source_of(settings, "d/*/x*", guaranteed=False)
    with opened(source, sink := open_sink(settings)):
        send(sink, *(Message(topic, topic.encode()) for topic in ("d/a/y", "d/a/xy", "d/b/x")))
        got = collect(source, 2)

    assert [message.address for message in got] == ["d/a/xy", "d/b/x"]


def test_an_unsettled_message_is_redelivered(settings: SolaceSettings) -> None:
    source = source_of(settings, "s/>")
    mode = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
    with opened(sink := open_sink(settings)):
        with opened(source):
            send(sink, Message("s/1", b"1", mode))
            receive(source)
        with opened(source):
            (redelivered,) = collect(source, 1)

    assert redelivered.headers.redelivered


def test_a_message_retried_at_the_broker_is_redelivered(settings: SolaceSettings) -> None:
    source = source_of(settings, "r/>", retry_at_broker=True)
    mode = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
    with opened(source, sink := open_sink(settings)):
        send(sink, Message("r/1", b"1", mode))
        receive(source).settle([RETRY])
        (redelivered,) = collect(source, 1)

        assert redelivered.headers.redelivered
        assert source.receive(QUIET) is None

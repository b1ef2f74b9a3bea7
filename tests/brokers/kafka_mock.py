"""The mock cluster of librdkafka: a server in this process that answers with errors on demand."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.endpoints.settings.kafka import KafkaSettings

PRODUCE = 0  # key of a request: Kafka protocol guide
_PRODUCER = 0  # type of a client: rdkafka.h
_POINTER = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_FUNCTIONS = {
    "rd_kafka_conf_new": (_POINTER,),
    "rd_kafka_new": (_POINTER, ctypes.c_int, _POINTER, _TEXT, ctypes.c_size_t),
    "rd_kafka_destroy": (None, _POINTER),
    "rd_kafka_mock_cluster_new": (_POINTER, _POINTER, ctypes.c_int),
    "rd_kafka_mock_cluster_destroy": (None, _POINTER),
    "rd_kafka_mock_cluster_bootstraps": (_TEXT, _POINTER),
    "rd_kafka_mock_topic_create": (ctypes.c_int, _POINTER, _TEXT, ctypes.c_int, ctypes.c_int),
    "rd_kafka_mock_topic_set_error": (None, _POINTER, _TEXT, ctypes.c_int),
    "rd_kafka_mock_push_request_errors_array": (
        None, _POINTER, ctypes.c_int16, ctypes.c_size_t, _POINTER,
    ),
}  # fmt: skip


class KafkaMock:
    """A cluster of two servers, with the library that the client uses. Mutable."""

    def __init__(self, library: ctypes.CDLL, cluster: int) -> None:
        self._library, self._cluster = library, cluster
        self.url: str = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()

    @property
    def settings(self) -> KafkaSettings:
        found = KafkaSettings(bootstrap_servers=tuple(self.url.split(",")))
        return found.for_gateway("gateway", "kafka")

    def make_topic(self, name: str, partitions: int = 1) -> None:
        self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)

    def deny(self, topic: str, code: int) -> None:
        """Answer questions about a topic with an error; 0 ends that."""
        self._library.rd_kafka_mock_topic_set_error(self._cluster, topic.encode(), code)

    def answer(self, request: int, *codes: int) -> None:
        """Answer the next requests of a kind with errors, one each; 0 is none."""
        array = (ctypes.c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, request, len(codes), ctypes.byref(array)
        )


@contextmanager
def mock_cluster() -> Iterator[KafkaMock]:
    import confluent_kafka  # noqa: PLC0415  # its tests skip without it

    folder = Path(str(confluent_kafka.__file__)).parents[1] / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    for name, (answer, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = answer, arguments
    client = library.rd_kafka_new(
        _PRODUCER, library.rd_kafka_conf_new(), ctypes.create_string_buffer(512), 512
    )
    cluster = library.rd_kafka_mock_cluster_new(client, 2)
    try:
        yield KafkaMock(library, cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)

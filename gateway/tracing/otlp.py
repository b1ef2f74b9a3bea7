"""Sends spans to a collector: OTLP over HTTP, binary protobuf; a batch that fails is dropped.

Nothing waits for it: the SDK's thread calls, and what the collector does not take is gone. It
uses no proxy, and a connection for each batch; a quiet gateway sends at most one a second.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from gateway.config.process import TracingRef
from gateway.errors import TracingError

log = logging.getLogger(__name__)

PATIENCE: Final = 5.0  # seconds for each step of a request
SIGNAL: Final = "/v1/traces"  # OTLP specification, OTLP/HTTP Request: the path of a base address


class Exporter(SpanExporter):
    """Mutable: it remembers whether the collector is away, so as to say it once."""

    def __init__(self, ref: TracingRef) -> None:
        """Connect to nothing yet.

        Raises:
            TracingError: the file of certificates cannot be used.
        """
        url = urlsplit(ref.otlp)
        self._where = ref.otlp
        self._host, self._port = url.hostname or "", url.port
        self._path = (url.path if url.path.strip("/") else SIGNAL) + (url.query and f"?{url.query}")
        self._headers = {"Content-Type": "application/x-protobuf"}
        if ref.token is not None:
            self._headers["Authorization"] = f"Bearer {ref.token}"
        self._tls = _tls(ref) if url.scheme == "https" else None
        self._away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            self._post(encode_spans(spans).SerializeToString())
        except (OSError, HTTPException) as error:
            if not self._away:
                said = str(error) or type(error).__name__
                log.warning("traces do not get to %s: %s; they are dropped", self._where, said)
            self._away = True
            return SpanExportResult.FAILURE
        if self._away:
            log.info("traces get to %s again", self._where)
        self._away = False
        return SpanExportResult.SUCCESS

    def _post(self, body: bytes) -> None:
        connection = self._connect()
        try:
            connection.request("POST", self._path, body, self._headers)
            answer = connection.getresponse()
            if answer.status // 100 != 2:  # noqa: PLR2004  # HTTP's own
                raise HTTPException(f"it answers {answer.status} {answer.reason}")
        finally:
            connection.close()

    def _connect(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self._host, self._port, timeout=PATIENCE)
        return HTTPSConnection(self._host, self._port, timeout=PATIENCE, context=self._tls)


def _tls(ref: TracingRef) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ref.ca_file)
    except (OSError, ssl.SSLError) as error:
        said = error.strerror or error
        raise TracingError(f"tracing: cannot use the certificates {ref.ca_file}: {said}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context

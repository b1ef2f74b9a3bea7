"""Exports spans to a collector: OTLP over HTTP, binary protobuf.

The SDK's thread exports; no message waits for it. A batch that fails is dropped. Each batch has
its own connection, without a proxy; batches that are not full are sent once a second.
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

from gateway.config.process import TracingSettings
from gateway.errors import TracingError, first_line

log = logging.getLogger(__name__)

HTTP_TIMEOUT: Final = 5.0  # seconds for each step of a request
TRACES_PATH: Final = "/v1/traces"  # OTLP specification, OTLP/HTTP Request; for a bare base URL


class OtlpExporter(SpanExporter):
    """Exports spans to one collector and logs each failure and recovery once.

    Mutable: owned by the SDK's exporting thread.
    """

    def __init__(self, ref: TracingSettings) -> None:
        """Prepare the requests; `export` connects.

        Raises:
            TracingError: the certificate file cannot be used.
        """
        url = urlsplit(ref.otlp)
        self._url = ref.otlp
        self._host, self._port = url.hostname or "", url.port
        self._path = (url.path if url.path.strip("/") else TRACES_PATH) + (
            url.query and f"?{url.query}"
        )
        self._headers = {"Content-Type": "application/x-protobuf"}
        if ref.token is not None:
            self._headers["Authorization"] = f"Bearer {ref.token}"
        self._tls = _tls(ref) if url.scheme == "https" else None
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            self._post(encode_spans(spans).SerializeToString())
        except (OSError, HTTPException) as error:
            if not self._failing:
                reason = first_line(error)
                log.warning("cannot export traces to %s: %s; they are dropped", self._url, reason)
            self._failing = True
            return SpanExportResult.FAILURE
        if self._failing:
            log.info("traces are exported to %s again", self._url)
        self._failing = False
        return SpanExportResult.SUCCESS

    def _post(self, body: bytes) -> None:
        connection = self._connect()
        try:
            connection.request("POST", self._path, body, self._headers)
            answer = connection.getresponse()
            if answer.status // 100 != 2:  # noqa: PLR2004  # HTTP success
                raise HTTPException(f"the collector answered {answer.status} {answer.reason}")
        finally:
            connection.close()

    def _connect(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self._host, self._port, timeout=HTTP_TIMEOUT)
        return HTTPSConnection(self._host, self._port, timeout=HTTP_TIMEOUT, context=self._tls)


def _tls(ref: TracingSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ref.ca_file)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        text = f"tracing: cannot use the certificates {ref.ca_file}: {reason}"
        raise TracingError(text) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context

"""The parsers of files: configurations, mappings of other bridges, the archive and the spool."""

from __future__ import annotations

import json
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Final

import msgpack

from gateway.archive.journal.ends import read_head, read_trailer
from gateway.archive.journal.records import MAGIC, MARK, Rows, pack, read_records
from gateway.archive.name_store import _entry as read_name_line
from gateway.config.load import load
from gateway.errors import (
    ArchiveError,
    ConfigErrors,
    GatewayError,
    SpoolError,
)
from gateway.imports.document import render
from gateway.imports.ems.importer import import_ems
from gateway.imports.mosquitto.importer import import_mosquitto
from gateway.imports.nanomq.importer import import_nanomq
from gateway.imports.rabbitmq.importer import import_rabbitmq
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.night.archive.seals.seal import from_json
from gateway.runtime.delivery.outbound_batch import PendingRow
from gateway.runtime.outbound.spool_codec import pack_batch, unpack_batch
from tests.copy_proofs import PROOF
from tests.fuzz.parser import NAME_WORDS, Parser

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = ROOT / "tests/imports/samples"
EMS_FILES: Final = (
    "bridges.conf", "topics.conf", "transports.conf", "bridges.script", "tibemsd.json",
)  # fmt: skip


def configuration() -> Parser:
    folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)  # noqa: S108  # memory
    path = Path(folder.name) / "gateway.yaml"

    def parse(data: bytes, _: object = folder) -> None:  # the default keeps the folder
        path.write_bytes(data)
        load(path, {})

    text = b"""\
endpoints:
  plant: {kind: mqtt, host: 127.0.0.1, port: 1883, password: "${env:PW}"}
  core: {kind: memory, dialect: ems, prefix: p}
routes:
  lines:
    from: {endpoint: plant, pattern: "line/{line}/{rest...}"}
    to: {endpoint: core, template: "lines.{line}.{rest...}"}
web: {port: 8047}
archive: {path: archive}
"""
    return Parser(
        "configuration",
        parse,
        (ConfigErrors,),
        (
            text,
            b"defaults: {route: {queue: 5}}\n" + text,
            b"include: [x.yaml]\n",
            b"a: &a [1]\nb: *a\n",
        ),
        (
            b"&a ",
            b"*a",
            b"<<: ",
            b"!!int ",
            b"- ",
            b"{",
            b"}",
            b"[",
            b"]",
            b": ",
            b"\n",
            b"${env:A}",
            b"${",
            b"0x",
            b"|\n",
            b"%YAML 1.1\n",
        ),
        regressions=(b"a: &a [*a]", b"P: &a [b: *a\n]"),  # a value in itself
    )


def ems_import() -> Parser:
    def parse(data: bytes) -> None:
        at = data[0] % len(EMS_FILES) if data else 0
        render(import_ems([(EMS_FILES[at], data[1:])]))

    files = [
        bytes((at,)) + (SAMPLES / name).read_bytes()[:1_500] for at, name in enumerate(EMS_FILES)
    ]
    return Parser(
        "import.ems",
        parse,
        (GatewayError,),
        files,
        (b"[topic:a.>]\n", b'selector="', b"queue=", b"\\\n", *NAME_WORDS),
        lambda: iter(
            (
                b"\0" + b"x\n" * 8_000,
                b"\0" + b"[topic:a.>]\nqueue=q\n" * 800,
                b"\0[topic:a]\n" + b"queue=q\n" * 1_500,
                b"\1a " + b"p," * 4_000,
                b"\1" + b"a import=x\n" * 1_000,
                b"\2[x]\n" + b"y=z\n" * 3_000,
                b"\3" + b"create bridge source=topic:a target=queue:b\n" * 1_000,
                b'\4{"bridges": ['
                + b'{"source": "topic:a", "targets": ["queue:b"]},' * 500
                + b"1]}",
                b'\4{"a":' + b"[" * 8_000,
            )
        ),
    )


def nanomq_import() -> Parser:
    block = b'bridges.mqtt.c { server = "h:1"\nforwards = [{ local_topic = "a/#" }] }\n'
    return Parser(
        "import.nanomq",
        lambda data: render(import_nanomq("nanomq.conf", data)),
        (GatewayError,),
        [(SAMPLES / name).read_bytes() for name in ("nanomq.conf", "emqx_bridge_mqtt.conf")],
        (b'server = "h:1"\n', b"forwards = [", b"{", b"}", b"]", b'"""', b"//", *NAME_WORDS),
        lambda: iter(
            (
                block * 100,
                b"a " * 8_000,
                b'"""' + b"x" * 8_000,
                b"{" * 8_000,
                b"\n" * 16_000,
                b"bridge.mqtt.x.forwards=" + b"a/#," * 900,
                b"bridge.mqtt.x.address=h" + b" " * 16_000 + b"x",
            )
        ),
    )


def rabbitmq_import() -> Parser:
    shovel = (
        b'{"component": "shovel", "name": "s", "value": {"src-uri": "amqp://",'
        b' "src-queue": "a", "dest-uri": "amqp://h", "dest-queue": "b"}},'
    )
    return Parser(
        "import.rabbitmq",
        lambda data: render(import_rabbitmq("definitions.json", data)),
        (GatewayError,),
        [(SAMPLES / "definitions.json").read_bytes()[:1_500]],
        (b'"parameters": [', b'"component": "shovel",', b'"value": {', b'"amqp://"', *NAME_WORDS),
        lambda: iter(
            (
                b'{"parameters": [' + shovel * 100 + b"1]}",
                b'{"policies": [' + b'{"name": "p"},' * 1_000 + b"1]}",
                b'{"a": ' + b"[" * 16_000,
            )
        ),
    )


def mosquitto_import() -> Parser:
    return Parser(
        "import.mosquitto",
        lambda data: render(import_mosquitto("mosquitto.conf", data, lambda _folder: ())),
        (GatewayError,),
        (
            (SAMPLES / "mosquitto.conf").read_bytes()[400:1_400],
            b"connection a\naddress b:1\ntopic # both 2 x/ y/\n",
        ),
        (b"\ntopic ", b" both ", b" in 2 ", b'""', b"\nconnection x\naddress y\n", *NAME_WORDS),
        lambda: (
            b"connection a\naddress b\n" + lines
            for lines in (
                b"topic # both\n" * 1_200,
                b'topic a/+/# both 0 "" x/\ntopic a/# in\ntopic # out\n' * 350,
                b"topic a+ both\n" * 1_000,
                b"remote_password x\n" * 300 + b"#a\n" * 4_000,
                b"topic " + b"+/" * 4_000 + b"\n",
                b"topic " + b"a/" * 190 + b"# both\n",
                b"x\n" * 8_000,
            )
        ),
        (b"connection a\naddress b:65536\ntopic a\n",),  # a port that does not exist
    )


def framed(body: bytes) -> bytes:
    return MARK + struct.pack(">II", len(body), zlib.crc32(body)) + body


def journal() -> Parser:
    def parse(data: bytes) -> None:
        """Read a journal: the bytes as they are, and as the body of an intact record."""
        for each in (MAGIC + data, MAGIC + framed(data)):
            read_head(each)
            read_trailer(each)
            try:
                list(read_records(each))
            except ArchiveError:
                continue

    rows = Rows(2, {"leg": "received", "time": 5}, {"name": ["a", "b"], "hash": [b"x", b"y"]})
    shared = ["a", "b"]
    twice = Rows(2, {"leg": "delivered"}, {"name": shared, "route": shared})
    record = pack([rows, twice])
    return Parser(
        "archive.journal",
        parse,
        (),
        (record * 2, record[12:], msgpack.packb({"gateway": "a", "opened": 5})),
        (
            MARK,
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\xdb\xff\xff\xff\xff",
            b"\x91" * 600,
        ),
        lambda: iter(
            ((MARK + struct.pack(">II", 1 << 19, 0)) * 90_000,)
        ),  # a payload can hold this
        (
            msgpack.packb([[1, {}, {}]]) + b"more",
            msgpack.packb([[1, {}, {"name": 5}]]),
            msgpack.packb([5]),
            msgpack.packb([[2, {}, {"name": ["a"]}]]),
            msgpack.packb("text"),
            b"\xc1",
        ),
    )


def archive_texts() -> Parser:
    def parse(data: bytes) -> None:
        if data and data[0] % 2:
            list(read_name_line(data[1:]))
        else:
            from_json(data[1:])

    seal = {
        "version": 1,
        "kind": "merged",
        "date": "2026-01-02",
        "generation": 1,
        "replaces": [],
        "segments": [],
        "keyed": False,
        "mac": "00",
    }
    name = {"digest": "00", "levels": ["a", "b"], "time": 5}
    valid = [bytes((at,)) + json.dumps(each).encode() for at, each in enumerate((seal, name))]
    return Parser(
        "archive.texts",
        parse,
        (ValueError, ArchiveError),
        valid,
        (b"[", b"{", b"null", b'"mac":', b"9" * 5_000),
    )


def spool() -> Parser:
    headers = Headers(
        DeliveryMode.AT_LEAST_ONCE, origin=("a",), properties={"n": 2**80, "m": {"x": [1]}}
    )
    messages = [Message("a/b", b"x", headers, PROOF), Message("a/c", {"y": 1.5}, Headers())]
    pending = [PendingRow((0, 1), Rows(2, {"leg": "delivered"}, {"name": ["a", "b"]}), "plant")]
    return Parser(
        "spool",
        unpack_batch,
        (SpoolError,),
        (pack_batch(messages, pending), pack_batch(messages[:1], [])),
        (
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\xc7\x20\x01" + b"9" * 32,
            b"\x91" * 600,
            b"\xc0",
        ),
        regressions=[
            msgpack.packb(each)
            for each in (
                [1],
                [[1], [], []],
                [[], [[1]], []],
                [[], [["a", b"", 0]], []],
                [[], [], [5]],
            )
        ]
        + [b"\x93\x91\x81\xa4mode" + b"\x91" * 1_010 + b"\xc0\x90\x90"],  # no text of it
    )

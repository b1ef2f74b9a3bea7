"""Rewrite compiled classes from `javax.jms` to `jakarta.jms`, in their constant pools.

The two packages have the same types (JMS 2.0 and 3.0); only the names differ.
"""

from __future__ import annotations

import zipfile
from io import BytesIO
from struct import Struct

from gateway.errors import WireError

OLD, NEW = b"javax/jms", b"jakarta/jms"
OLD_DOTTED, NEW_DOTTED = b"javax.jms", b"jakarta.jms"
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)  # fixed, so that equal classes give equal jars

_U16 = Struct(">H")
_MAGIC = b"\xca\xfe\xba\xbe"
_UTF8 = 1
_CONSTANT_SIZES = {
    3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5,
    19: 3, 20: 3,
}  # fmt: skip  # bytes of a constant by its tag (JVM Specification, 4.4)
_DOUBLE_SLOT = frozenset({5, 6})  # a long or double takes two slots of the pool


def rewrite_class(data: bytes) -> bytes:
    """Return the class file with `jakarta.jms` in place of `javax.jms`.

    Raises:
        WireError: `data` is no class file.
    """
    if data[:4] != _MAGIC:
        raise WireError("jms: not a class file")
    count = _U16.unpack_from(data, 8)[0]
    parts = [data[:10]]
    position, index = 10, 1
    while index < count:
        tag = data[position]
        if tag == _UTF8:
            end = position + 3 + _U16.unpack_from(data, position + 1)[0]
            text = data[position + 3 : end].replace(OLD, NEW).replace(OLD_DOTTED, NEW_DOTTED)
            parts.append(bytes((tag,)) + _U16.pack(len(text)) + text)
        elif tag in _CONSTANT_SIZES:
            end = position + _CONSTANT_SIZES[tag]
            parts.append(data[position:end])
        else:
            raise WireError(f"jms: a class file has a constant with the unknown tag {tag}")
        position = end
        index += 2 if tag in _DOUBLE_SLOT else 1
    parts.append(data[position:])
    return b"".join(parts)


def rewrite_jar(data: bytes) -> bytes:
    """Return the jar with rewritten classes and paths, and without signatures."""
    with zipfile.ZipFile(BytesIO(data)) as jar:
        classes = {
            name.replace(OLD.decode(), NEW.decode()): rewrite_class(jar.read(name))
            for name in jar.namelist()
            if name.endswith(".class") and not name.startswith("META-INF/")
        }
        others = {
            name: jar.read(name)
            for name in jar.namelist()
            if not name.endswith((".class", "/")) and not name.endswith((".SF", ".RSA", ".DSA"))
        }
    return make_jar(classes | others)


def make_jar(files: dict[str, bytes]) -> bytes:
    """Return a jar whose bytes depend on `files` alone."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as jar:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, ENTRY_TIME)
            entry.external_attr = 0o644 << 16
            jar.writestr(entry, files[name])
    return buffer.getvalue()

"""The process's Java machine and the class loaders of its JMS libraries; the one user of JPype.

One machine serves the process for ever: it cannot be started twice. Each class path has a loader
of its own, so that two vendors, or `javax.jms` and `jakarta.jms`, do not see each other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from glob import glob
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import jpype
import jpype.config

from gateway.errors import DriverMissingError, EndpointError

log = logging.getLogger(__name__)

Java: TypeAlias = Any  # an object or a class of Java, of which Python has no type
T = TypeVar("T")
JavaError: type[Exception] = jpype.JException
OPTIONS = (  # of equal ones Java takes the last, so what a user gives counts
    "-Xms24m",
    "-Xmn16m",  # for new objects; in the 5 MB that Java would take it collects three times as often
    "-Xmx256m",
    "-Xss256k",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",  # a Java machine with a full heap recovers half at best
    "-Xrs",  # JPype's handler of SIGTERM calls Python without its lock, which can crash
)
COLLECTOR = "-XX:+UseSerialGC"  # of two collectors Java takes none, and ends the process
HELP = (
    "for EMS up to 8.6 put jms-2.0.jar and tibjms.jar in `classpath`, from 8.7 on"
    " jakarta.jms-api-2.0.3.jar and tibjms.jar; both are in lib of the EMS installation"
)
_starting = threading.Lock()


@dataclass(frozen=True, slots=True)
class Library:
    """A vendor's classes and ours beside them."""

    loader: Java
    package: str  # javax or jakarta

    def find(self, name: str) -> Java:
        """The class `name`.

        Raises:
            DriverMissingError: no jar has it, or one it needs is missing.
        """
        try:
            return jpype.JClass(name, loader=self.loader)
        except (TypeError, JavaError) as error:
            raise DriverMissingError(
                f"jms: the class {name} is in no jar of `classpath` ({error}); {HELP}"
            ) from error

    def jms(self, name: str) -> Java:
        """A type of the JMS interfaces."""
        return self.find(f"{self.package}.jms.{name}")

    def helper(self, name: str) -> Java:
        """A class of our own jar."""
        return self.find(f"gateway.jms.{name}")

    def run(self, call: Callable[[], T]) -> T:
        """`call`, in a thread that finds classes by name as the vendor's code expects to."""
        thread = jpype.java.lang.Thread.currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(self.loader)
        try:
            return call()
        finally:
            thread.setContextClassLoader(before)


def start_jvm(options: Sequence[str]) -> None:
    """Start Java unless it runs, with ours and `options`; the handlers of Python's signals stay.

    Raises:
        DriverMissingError: there is no Java.
        EndpointError: it does not start.
    """
    with _starting:
        if jpype.isJVMStarted():
            return
        # A connection that is open when the interpreter ends would keep it from ending.
        jpype.config.destroy_jvm = False
        chosen = any(option.startswith("-XX:+Use") and option.endswith("GC") for option in options)
        options = (*OPTIONS, *(() if chosen else (COLLECTOR,)), *options)
        try:
            jpype.startJVM(*options, classpath=[], interrupt=False, convertStrings=False)
        except jpype.JVMNotFoundException as error:
            raise DriverMissingError(
                "jms: no Java machine found; install a JRE of 11 or newer (Debian:"
                " default-jre-headless) or set JAVA_HOME to one"
            ) from error
        except (OSError, RuntimeError, JavaError) as error:
            raise EndpointError(
                f"jms: Java does not start with {' '.join(options)}: {error}"
            ) from error
        # A thread of JPype's has Python collect all its garbage, 10 ms with the interpreter held,
        # whenever Java has collected some, and aborts the process while Python ends. It is there
        # for objects of Python that Java holds, proxies above all: we give it none.
        jpype.JClass("org.jpype.ref.JPypeReferenceQueue").getInstance().stop()
        log.info("java started", extra={"options": list(options)})


def heap() -> int:
    """Bytes that Java may take for its objects."""
    return int(jpype.java.lang.Runtime.getRuntime().maxMemory())


def find_jars(entries: Sequence[str]) -> tuple[str, ...]:
    """The files that the entries of a class path stand for, in their order.

    Raises:
        DriverMissingError: an entry stands for no file.
    """
    if not entries:
        raise DriverMissingError(f"jms: `classpath` is empty; {HELP}")
    jars: list[str] = []
    for entry in entries:
        found = sorted(glob(entry)) if any(c in entry for c in "*?[") else [entry]  # noqa: PTH207
        missing = [each for each in found if not Path(each).exists()]
        if missing or not found:
            raise DriverMissingError(f"jms: no file {entry!r} of `classpath`; {HELP}")
        jars += found
    return tuple(dict.fromkeys(str(Path(jar).resolve()) for jar in jars))


def load_library(jars: tuple[str, ...], api: str, factory: str) -> Library:
    """The classes of `jars`; one library for all who ask for the same, so that they can meet.

    Raises:
        DriverMissingError: the JMS interfaces are in no jar.
    """
    packages = ("javax", "jakarta") if api == "auto" else (api,)
    bare = _load(jars, "")
    present = [each for each in packages if _has(bare.loader, f"{each}/jms/Session.class")]
    if not present:
        wanted = " or ".join(f"{each}.jms" for each in packages)
        raise DriverMissingError(f"jms: no jar of `classpath` has the interfaces {wanted}; {HELP}")
    if len(present) > 1 and factory:
        made = bare.find(factory).class_
        present = [
            each
            for each in present
            if bare.find(f"{each}.jms.ConnectionFactory").class_.isAssignableFrom(made)
        ] or present
    return _load(jars, present[0])


@cache
def _load(jars: tuple[str, ...], package: str) -> Library:
    urls = [_url(Path(jar)) for jar in jars]
    if package:
        helper = resources.files("gateway.endpoints.jms") / f"gateway-jms-{package}.jar"
        with resources.as_file(helper) as path:
            urls.append(_url(path))
            return Library(_make_loader(urls), package)
    return Library(_make_loader(urls), package)


def _make_loader(urls: list[Java]) -> Java:
    parent = jpype.java.lang.ClassLoader.getPlatformClassLoader()
    return jpype.java.net.URLClassLoader(jpype.JArray(jpype.java.net.URL)(urls), parent)


def _url(path: Path) -> Java:
    return jpype.java.io.File(str(path)).toURI().toURL()


def _has(loader: Java, resource: str) -> bool:
    return loader.findResource(resource) is not None


def java_list(values: Sequence[Java]) -> Java:
    """A Java list; arrays of a class that only a loader of ours knows cannot be made."""
    made = jpype.java.util.ArrayList()
    for value in values:
        made.add(value)
    return made


def ints(values: Sequence[int]) -> Java:
    return jpype.JArray(jpype.JInt)(list(values))


def byte_array(data: bytes) -> Java:
    return jpype.JArray(jpype.JByte)(data)


def text(value: str | None) -> Java:
    """A Java string, or a null that says it is one: overloads differ in nothing else."""
    string = jpype.java.lang.String
    return jpype.JObject(None, string) if value is None else string(value)

"""The Java virtual machine of the process, a class loader for each JMS library, and their errors.

A process can start the JVM only once. Each class path has its own loader, so that two vendors, or
`javax.jms` and `jakarta.jms`, are kept apart.
"""

from __future__ import annotations

import ctypes
import logging
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from glob import glob
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import jpype
import jpype.config

from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import DriverMissingError, EndpointError

log = logging.getLogger(__name__)

Java: TypeAlias = Any  # an object or a class of Java; Python has no types for them
T = TypeVar("T")
JavaError: type[Exception] = jpype.JException
DEFAULT_OPTIONS = (  # Java takes the last of equal options, so that a user's options win
    "-Xms24m",
    "-Xmn16m",  # for new objects; Java's default of 5 MB is collected three times as often
    "-Xmx256m",
    "-Xss256k",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",  # after a full heap a JVM recovers only in part
    "-Xrs",  # JPype's SIGTERM handler calls Python without its lock and can crash
)
DEFAULT_COLLECTOR = "-XX:+UseSerialGC"  # given two collectors, Java ends the process
CLASSPATH_HELP = (
    "for EMS up to 8.6 put jms-2.0.jar and tibjms.jar in `classpath`, from 8.7 on"
    " jakarta.jms-api-2.0.3.jar and tibjms.jar; both are in lib of the EMS installation"
)
_PERMANENT = frozenset(  # exceptions after which another attempt fails as well
    {"JMSSecurityException", "InvalidDestinationException", "InvalidSelectorException"}
)
_start_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class JmsLibrary:
    """A vendor's classes and the gateway's helper classes, from one class loader."""

    loader: Java
    package: str  # javax or jakarta

    def find(self, name: str) -> Java:
        """Return the class `name`.

        Raises:
            DriverMissingError: no jar has it, or a class it needs is missing.
        """
        try:
            return jpype.JClass(name, loader=self.loader)
        except (TypeError, JavaError) as error:
            raise DriverMissingError(
                f"jms: the class {name} is in no jar of `classpath` ({error}); check `factory` and"
                f" `jndi_factory`, or add the jar; {CLASSPATH_HELP}"
            ) from error

    def has(self, resource: str) -> bool:
        """Return whether a jar has the file `resource`."""
        return self.loader.findResource(resource) is not None

    def jms(self, name: str) -> Java:
        """Return a type of the JMS interfaces."""
        return self.find(f"{self.package}.jms.{name}")

    def helper(self, name: str) -> Java:
        """Return a class of the gateway's own jar."""
        return self.find(f"gateway.jms.{name}")

    def run(self, call: Callable[[], T]) -> T:
        """Call with the vendor's class loader as the thread's, as the vendor's code expects."""
        thread = jpype.java.lang.Thread.currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(self.loader)
        try:
            return call()
        finally:
            thread.setContextClassLoader(before)


def start_jvm(options: Sequence[str]) -> None:
    """Start Java with the default options and `options`; do nothing when it runs.

    Python's signal handlers stay in place.

    Raises:
        DriverMissingError: Java is not installed.
        EndpointError: Java does not start.
    """
    with _start_lock:
        if jpype.isJVMStarted():
            return
        # Waiting for the JVM would block the interpreter's end while a connection is open.
        jpype.config.destroy_jvm = False
        chosen = any(option.startswith("-XX:+Use") and option.endswith("GC") for option in options)
        options = (*DEFAULT_OPTIONS, *(() if chosen else (DEFAULT_COLLECTOR,)), *options)
        try:
            jpype.startJVM(*options, classpath=[], interrupt=False, convertStrings=False)
        except jpype.JVMNotFoundException as error:
            raise DriverMissingError(
                "jms: no Java virtual machine found; install a JRE of 11 or newer (Debian:"
                " default-jre-headless) or set JAVA_HOME to one"
            ) from error
        except (OSError, RuntimeError, JavaError) as error:
            raise EndpointError(
                f"jms: Java does not start with {' '.join(options)}: {error}"
            ) from error
        # After each Java collection a JPype thread runs a full Python collection, which holds the
        # interpreter for 10 ms and can abort the process while Python ends. It serves proxies and
        # other Python objects that Java holds; the gateway has none.
        jpype.JClass("org.jpype.ref.JPypeReferenceQueue").getInstance().stop()
        _exit_at_once()
        log.info("java started", extra={"options": list(options)})


def _exit_at_once() -> None:
    """Let `exit` of C end the process before the exit handlers that libraries have registered.

    Java up to 17 calls it when its heap is full, while all threads run. A handler that destroys
    what a thread uses would abort the process, and its exit code would be another one.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # of glibc; the handler that was registered last is called first
        libc.on_exit(ctypes.cast(libc["_exit"], ctypes.c_void_p), None)


def max_heap() -> int:
    """Return the limit of Java's heap in bytes."""
    return int(jpype.java.lang.Runtime.getRuntime().maxMemory())


def find_jars(entries: Sequence[str]) -> tuple[str, ...]:
    """Return the files that the entries of a class path name, in order.

    Raises:
        DriverMissingError: an entry names no file.
    """
    if not entries:
        raise DriverMissingError(f"jms: `classpath` is empty; {CLASSPATH_HELP}")
    jars: list[str] = []
    for entry in entries:
        found = sorted(glob(entry)) if any(c in entry for c in "*?[") else [entry]  # noqa: PTH207
        missing = [each for each in found if not Path(each).exists()]
        if missing or not found:
            raise DriverMissingError(f"jms: no file {entry!r} of `classpath`; {CLASSPATH_HELP}")
        jars += found
    return tuple(dict.fromkeys(str(Path(jar).resolve()) for jar in jars))


def open_library(settings: JmsSettings) -> JmsLibrary:
    """Load the client library, after starting Java if it does not run.

    Raises:
        DriverMissingError: a jar, a class or Java itself is missing; the text gives the remedy.
    """
    jars = find_jars(settings.classpath)
    start_jvm(settings.jvm_options)
    factory = "" if settings.jndi_factory else settings.factory
    return load_library(jars, settings.api, factory)


def load_library(jars: tuple[str, ...], api: str, factory: str) -> JmsLibrary:
    """Return the library of `jars`; equal arguments give the same library.

    Raises:
        DriverMissingError: no jar has the JMS interfaces.
    """
    packages = ("javax", "jakarta") if api == "auto" else (api,)
    vendor = _load(jars, "")
    present = [each for each in packages if vendor.has(f"{each}/jms/Session.class")]
    if not present:
        wanted = " or ".join(f"{each}.jms" for each in packages)
        raise DriverMissingError(
            f"jms: no jar of `classpath` has the interfaces {wanted}; {CLASSPATH_HELP}"
        )
    if len(present) > 1 and factory:
        factory_class = vendor.find(factory).class_
        present = [
            each
            for each in present
            if vendor.find(f"{each}.jms.ConnectionFactory").class_.isAssignableFrom(factory_class)
        ] or present
    return _load(jars, present[0])


@cache
def _load(jars: tuple[str, ...], package: str) -> JmsLibrary:
    urls = [_url(Path(jar)) for jar in jars]
    if package:
        helper = resources.files("gateway.endpoints.jms") / f"gateway-jms-{package}.jar"
        with resources.as_file(helper) as path:
            urls.append(_url(path))
    parent = jpype.java.lang.ClassLoader.getPlatformClassLoader()
    loader = jpype.java.net.URLClassLoader(jpype.JArray(jpype.java.net.URL)(urls), parent)
    return JmsLibrary(loader, package)


def _url(path: Path) -> Java:
    return jpype.java.io.File(str(path)).toURI().toURL()


def java_list(values: Sequence[Java]) -> Java:
    """Return a Java list; JPype makes no array of a class from a separate loader."""
    return jpype.java.util.ArrayList(list(values))


def byte_array(data: bytes) -> Java:
    return jpype.JArray(jpype.JByte)(data)


def text(value: str | None) -> Java:
    """Return a Java string, or a null typed as one, which selects the right overload."""
    string = jpype.java.lang.String
    return jpype.JObject(None, string) if value is None else string(value)


_PACKAGE: Final = re.compile(r"\b(?:[a-z][\w$]*\.)+(?=[A-Z][\w$]*(?:Exception|Error)\b)")
_LOG_IN: Final = re.compile(r"(?<=://)[^\s/]*@")
_PARAMETERS: Final = re.compile(r"\?[\w.%-]+=[^\s,)]*?(?=\.?(?:[\s,)]|$))")


def describe(error: BaseException) -> str:
    """Return a Java exception in one line: classes without packages, addresses without parameters.

    A library writes the URL that it made into its text, with what only it knows.
    """
    name = type(error).__name__.rpartition(".")[2]
    text = " ".join(str(error).split())
    for part in (_PACKAGE, _LOG_IN, _PARAMETERS):
        text = part.sub("", text)
    return text if text.startswith(name) else f"{name}: {text}"


def is_permanent(error: BaseException) -> bool:
    """Return whether another attempt would fail in the same way."""
    return type(error).__name__.rpartition(".")[2] in _PERMANENT

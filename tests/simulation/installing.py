"""Puts stand-ins in place of the real objects in every module of the runtime.

By the identity of the object, so that a new or a moved module needs no change here. A default of a
parameter and a default of a dataclass are replaced as well.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Final

from gateway import clock
from tests.simulation.scheduler import Scheduler
from tests.simulation.stand_ins import (
    RANDOM,
    THREADING,
    TIME,
    Condition,
    Event,
    Lock,
    PerTask,
    RLock,
    Semaphore,
    Thread,
    Timer,
    current_thread,
    get_ident,
    monotonic,
    random_number,
    since_boot,
    sleep,
    time_ns,
    use,
    wall_seconds,
)

PREFIXES: Final = (
    "gateway.runtime", "gateway.clock", "gateway.file_lock", "gateway.endpoints.base",
    "gateway.endpoints.received_queue", "gateway.endpoints.continuity",
    "gateway.archive.journal", "gateway.endpoints.mqtt.publish_state",
    "gateway.endpoints.mqtt.receive_state", "gateway.endpoints.jms.sink",
    "gateway.endpoints.solace.sink", "gateway.endpoints.sent_messages",
    "gateway.endpoints.yami4", "gateway.lease",
)  # fmt: skip
_REPLACED: Final[Mapping[int, object]] = {
    id(threading): THREADING, id(time): TIME, id(random): RANDOM,
    id(threading.Thread): Thread, id(threading.Lock): Lock, id(threading.RLock): RLock,
    id(threading.Condition): Condition, id(threading.Event): Event,
    id(threading.Semaphore): Semaphore, id(threading.BoundedSemaphore): Semaphore,
    id(threading.Timer): Timer, id(threading.current_thread): current_thread,
    id(threading.get_ident): get_ident, id(time.monotonic): monotonic, id(time.time): wall_seconds,
    id(time.time_ns): time_ns, id(time.sleep): sleep, id(time.perf_counter): monotonic,
    id(clock.since_boot): since_boot,  # it has the real `time` from its import
    id(random.random): random_number, id(random.uniform): RANDOM.uniform,
}  # fmt: skip
_DISTINCT: Final = 1 << 20  # a larger constant is one object, also as a default
_REAL_LOCKS: Final = (type(threading.Lock()), type(threading.RLock()))


@contextmanager
def installed(
    run: Scheduler, more: Mapping[int, object], constants: Mapping[str, object]
) -> Iterator[None]:
    """Run the block with the stand-ins of `run` in place; put the real ones back at the end.

    `more` maps the id of further objects to their replacements; `constants` are module constants,
    by name, that get another value wherever a module has them.
    """
    use(run)
    replaced = {**_REPLACED, **more}
    undo: list[Callable[[], None]] = []
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith(PREFIXES) and module is not None
    ]
    for module in modules:
        for name in constants.keys() & vars(module).keys():
            value = vars(module)[name]
            if isinstance(value, int) and value > _DISTINCT:
                replaced[id(value)] = constants[name]
    for module in modules:
        _replace_in_module(module, replaced, constants, undo)
    try:
        yield
    finally:
        for step in reversed(undo):
            step()


def _replace_in_module(
    module: ModuleType,
    replaced: Mapping[int, object],
    constants: Mapping[str, object],
    undo: list[Callable[[], None]],
) -> None:
    names = vars(module)
    for name, value in list(names.items()):
        new = replaced.get(id(value), value)
        if name in constants and isinstance(value, (int, float)):
            new = constants[name]
        if isinstance(value, threading.local):
            new = PerTask(type(value))
        elif isinstance(value, _REAL_LOCKS):
            new = Lock() if isinstance(value, _REAL_LOCKS[0]) else RLock()
        if new is not value:
            names[name] = new
            undo.append(lambda name=name, value=value: names.__setitem__(name, value))  # type: ignore[misc]
        elif isinstance(value, FunctionType) and value.__module__ == module.__name__:
            _replace_defaults(value, replaced, undo)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for member in list(vars(value).values()):
                function = getattr(member, "__func__", member)
                if isinstance(function, FunctionType):
                    _replace_defaults(function, replaced, undo)


def _replace_defaults(
    function: FunctionType, replaced: Mapping[int, object], undo: list[Callable[[], None]]
) -> None:
    for attribute in ("__defaults__", "__kwdefaults__"):
        values = getattr(function, attribute)
        if not values:
            continue
        found = values.values() if isinstance(values, dict) else values
        if not any(id(each) in replaced for each in found):
            continue
        new: object = (
            {name: replaced.get(id(each), each) for name, each in values.items()}
            if isinstance(values, dict)
            else tuple(replaced.get(id(each), each) for each in values)
        )
        setattr(function, attribute, new)
        undo.append(lambda a=attribute, v=values: setattr(function, a, v))  # type: ignore[misc]
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if id(value) in replaced and callable(value):
            cell.cell_contents = replaced[id(value)]
            undo.append(lambda c=cell, v=value: setattr(c, "cell_contents", v))  # type: ignore[misc]

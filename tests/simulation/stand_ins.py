"""Stand-ins for `threading`, `time` and `random` that belong to the scheduler of a simulation."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from greenlet import GreenletExit

from tests.simulation.scheduler import Process, Scheduler, Task


class _Now:
    """The scheduler of the running simulation."""

    scheduler: Scheduler


def scheduler() -> Scheduler:
    return _Now.scheduler


def use(run: Scheduler) -> None:
    """Let every stand-in belong to `run`."""
    _Now.scheduler = run


def _dead() -> bool:
    task = _Now.scheduler.current
    return task is not None and task.process.dead


def running_process() -> Process:
    """The process of the running task."""
    task = _Now.scheduler.current
    assert task is not None
    if task.process.dead:
        raise GreenletExit
    return task.process


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None or timeout < 0 else _Now.scheduler.now + timeout


class Lock:
    """A lock; who waits longest gets it, unless another task takes it first."""

    def __init__(self) -> None:
        self._owner: Task | str | None = None
        self._depth = 0
        self._waiting: deque[Task] = deque()

    _reentrant = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        run = _Now.scheduler
        run.point()
        task = run.current or "hub"
        if self._reentrant and self._owner is task:
            self._depth += 1
            return True
        deadline = _deadline(timeout)
        while self._owner is not None:
            if not blocking or isinstance(task, str):
                if isinstance(task, str):
                    raise RuntimeError("the hub waits for a lock")
                return False
            self._waiting.append(task)
            if not run.wait(deadline):
                if task in self._waiting:
                    self._waiting.remove(task)
                return False
        self._owner, self._depth = task, 1
        return True

    def release(self) -> None:
        if _dead():
            return
        if self._owner is None:
            raise RuntimeError("release unlocked lock")
        self._depth -= 1
        if self._depth:
            return
        self._owner = None
        if self._waiting:
            _Now.scheduler.wake(self._waiting.popleft())
        _Now.scheduler.point()

    def locked(self) -> bool:
        return self._owner is not None

    def _is_owned(self) -> bool:
        return self._owner is (_Now.scheduler.current or "hub")

    def _release_all(self) -> int:
        depth, self._depth = self._depth, 1
        self.release()
        return depth

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """A lock that its owner may take again."""

    _reentrant = True


class Condition:
    """A condition, as `threading.Condition`."""

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = lock if lock is not None else RLock()
        self.acquire, self.release = self._lock.acquire, self._lock.release
        self._waiting: deque[Task] = deque()

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        run = _Now.scheduler
        if _dead():
            raise GreenletExit
        if not self._lock._is_owned():  # noqa: SLF001
            raise RuntimeError("cannot wait on un-acquired lock")
        task = run.current
        if task is None:
            raise RuntimeError("the hub waits for a condition")
        if timeout is not None and timeout <= 0:
            depth = self._lock._release_all()  # noqa: SLF001
            self._lock.acquire()
            self._lock._depth = depth  # noqa: SLF001
            return False
        deadline = _deadline(timeout)
        self._waiting.append(task)
        # The release must not be a scheduling point: waiting and releasing are one step.
        depth, self._lock._depth, self._lock._owner = self._lock._depth, 0, None  # noqa: SLF001
        if self._lock._waiting:  # noqa: SLF001
            run.wake(self._lock._waiting.popleft())  # noqa: SLF001
        woken = run.wait(deadline)
        if not woken and task in self._waiting:
            self._waiting.remove(task)
        self._lock.acquire()
        self._lock._depth = depth  # noqa: SLF001
        return woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:  # noqa: ANN401
        deadline = _deadline(timeout)
        result = predicate()
        while not result:
            left = None
            if deadline is not None:
                left = deadline - _Now.scheduler.now
                if left <= 0:
                    break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        if _dead():
            return
        if not self._lock._is_owned():  # noqa: SLF001
            raise RuntimeError("cannot notify on un-acquired lock")
        for _ in range(min(n, len(self._waiting))):
            _Now.scheduler.wake(self._waiting.popleft())

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class Event:
    """An event, as `threading.Event`."""

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[Task] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        if _dead():
            return
        self._set = True
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            _Now.scheduler.wake(task)
        _Now.scheduler.point()

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        run = _Now.scheduler
        run.point()
        task, deadline = run.current, _deadline(timeout)
        while not self._set:
            if task is None:
                raise RuntimeError("the hub waits for an event")
            self._waiting.append(task)
            if not run.wait(deadline):
                if task in self._waiting:
                    self._waiting.remove(task)
                break
        return self._set


class Semaphore:
    """A semaphore, as `threading.Semaphore`."""

    def __init__(self, value: int = 1) -> None:
        self._value = value
        self._condition = Condition(Lock())

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        with self._condition:
            if not blocking and not self._value:
                return False
            if not self._condition.wait_for(lambda: self._value, timeout):
                return False
            self._value -= 1
            return True

    def release(self, n: int = 1) -> None:
        with self._condition:
            self._value += n
            self._condition.notify(n)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Thread:
    """A thread that is a task of the process that starts it."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        del group
        self._target, self._args, self._kwargs = target, args, kwargs or {}
        self.name = name or "thread"
        self.daemon = bool(daemon)
        self._task: Task | None = None

    def run(self) -> None:
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def start(self) -> None:
        run = _Now.scheduler
        if self._task is not None:
            raise RuntimeError("threads can only be started once")
        if run.current is None:
            raise RuntimeError("only a task starts a thread")
        if run.current.process.dead:
            raise GreenletExit
        self._task = run.spawn(self.name, run.current.process, self.run)
        self._task.thread = self
        run.point()

    def join(self, timeout: float | None = None) -> None:
        run, task, deadline = _Now.scheduler, self._task, _deadline(timeout)
        if task is None:
            raise RuntimeError("cannot join thread before it is started")
        run.point()
        while not task.done and run.current is not None:
            task.joiners.append(run.current)
            if not run.wait(deadline):
                task.joiners.remove(run.current)
                return

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done

    @property
    def ident(self) -> int | None:
        return id(self._task) if self._task else None


class Timer(Thread):
    """A thread that calls a function after a while, unless it is cancelled."""

    def __init__(self, interval: float, function: Callable[..., object]) -> None:
        super().__init__(name="timer")
        self._interval, self._function, self._cancelled = interval, function, Event()

    def run(self) -> None:
        if not self._cancelled.wait(self._interval):
            self._function()

    def cancel(self) -> None:
        self._cancelled.set()


class PerTask:
    """One object of a class derived from `threading.local` for each task."""

    def __init__(self, make: Callable[[], Any]) -> None:
        object.__setattr__(self, "_make", make)
        object.__setattr__(self, "_values", {})

    def _value(self) -> Any:  # noqa: ANN401
        key, values = _Now.scheduler.current, self._values
        if key not in values:
            values[key] = self._make()
        return values[key]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._value(), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._value(), name, value)


def current_thread() -> Thread | SimpleNamespace:
    task = _Now.scheduler.current
    if task is not None and task.thread is not None:
        thread: Thread = task.thread
        return thread
    return SimpleNamespace(name=task.name if task else "hub", ident=id(task), daemon=True)


def get_ident() -> int:
    return id(_Now.scheduler.current)


def since_boot() -> int:
    return int(monotonic() * 1e9)


def monotonic() -> float:
    return _Now.scheduler.now


def wall_seconds() -> float:
    return time_ns() / 1e9


def time_ns() -> int:
    run = _Now.scheduler
    return (run.clock_offset + int(run.now * 1_000_000)) * 1000


def sleep(seconds: float) -> None:
    _Now.scheduler.sleep(seconds)


def random_number() -> float:
    return _Now.scheduler.random.random()


THREADING: Final = SimpleNamespace(
    Thread=Thread, Lock=Lock, RLock=RLock, Condition=Condition, Event=Event, Timer=Timer,
    Semaphore=Semaphore, BoundedSemaphore=Semaphore, current_thread=current_thread,
    get_ident=get_ident, get_native_id=get_ident, local=threading.local,
    main_thread=current_thread, TIMEOUT_MAX=threading.TIMEOUT_MAX,
)  # fmt: skip
TIME: Final = SimpleNamespace(
    monotonic=monotonic, time=wall_seconds, time_ns=time_ns, sleep=sleep, perf_counter=monotonic,
    monotonic_ns=lambda: int(monotonic() * 1e9), thread_time=lambda: 0.0,
    clock_gettime_ns=lambda _: since_boot(), CLOCK_BOOTTIME=time.CLOCK_BOOTTIME,
)  # fmt: skip
RANDOM: Final = SimpleNamespace(
    random=random_number,
    uniform=lambda a, b: a + (b - a) * random_number(),
    Random=random.Random,
)

"""A scheduler of greenlets in place of threads: one seed gives one order of all steps.

Every operation of a stand-in (`tests.simulation.stand_ins`) is a point at which another task may
run. When all tasks wait, the clock jumps to the next deadline. The hub runs callbacks of the world
(faults) between two steps, never inside one.
"""

from __future__ import annotations

import heapq
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from greenlet import GreenletExit, getcurrent, greenlet

START: Final = 1_790_000_000_000_000  # microseconds since 1970-01-01 UTC: 2026-09-21
_FOREVER: Final = 1e18  # seconds


class InjectedError(MemoryError):
    """An error that no code of the product expects."""


@dataclass(slots=True)
class Process:
    """A process of the simulation; its tasks end together, without clean-up, when it is killed."""

    name: str
    dead: bool = False
    disk: Any = None  # of a gateway
    kept: dict[str, Any] = field(default_factory=dict)  # sessions of MQTT, by client
    tasks: list[Task] = field(default_factory=list)
    thread_ended: Callable[[str], None] = lambda _: None  # by an error
    frozen_until: float = 0.0  # no task of it runs before


class Task:
    """A thread of the simulation.

    Mutable: owned by the scheduler. `ticket` is not 0 while the task waits.
    """

    __slots__ = ("done", "failure", "joiners", "name", "priority", "process", "run", "thread",
                 "ticket", "woken")  # fmt: skip

    def __init__(self, name: str, process: Process, run: greenlet, priority: float) -> None:
        self.name, self.process, self.run = name, process, run
        self.priority = priority
        self.ticket = 0
        self.woken = False
        self.done = False
        self.failure: BaseException | None = None
        self.joiners: list[Task] = []
        self.thread: Any = None  # the stand-in that started the task


@dataclass(frozen=True, slots=True)
class Policy:
    """How the scheduler chooses.

    `switch` is the probability of another task at a point, `pause` of a pause of the task there,
    at most `longest` seconds. With `by_priority` the ready task of the highest priority runs, and
    priorities change now and then; otherwise any ready task runs.
    """

    switch: float = 0.1
    pause: float = 0.0
    longest: float = 0.5
    by_priority: bool = False


class Scheduler:
    """Runs tasks one at a time. Mutable: used by one thread.

    Units: seconds of the simulated monotonic clock.
    """

    def __init__(self, seed: int, policy: Policy) -> None:
        self.random = Random(seed)  # noqa: S311  # no secret
        self.policy = policy
        self.now = 0.0
        self.clock_offset = START  # of the wall clock, in microseconds
        self.steps = 0
        self.current: Task | None = None
        self.failures: list[str] = []
        self._ready: list[Task] = []
        self._timers: list[tuple[float, int, Task | Callable[[], None]]] = []
        self._tickets = 0
        self._kills: list[tuple[int, Callable[[], None]]] = []
        self._hub = getcurrent()

    def spawn(self, name: str, process: Process, function: Callable[[], object]) -> Task:
        """Start a task; it runs at the next opportunity."""
        task: Task

        def body() -> None:
            try:
                function()
            except GreenletExit:
                pass
            except BaseException as error:  # noqa: BLE001  # a thread that dies is a finding
                task.failure = error
                if not isinstance(error, InjectedError):
                    self.failures.append(f"{name}: {traceback.format_exc()}")
                process.thread_ended(f"{name}: {error!r}")
            self._end(task)

        task = Task(name, process, greenlet(body, self._hub), self.random.random())
        process.tasks.append(task)
        self._ready.append(task)
        return task

    def _end(self, task: Task) -> None:
        task.done = True
        if not task.process.dead:
            task.process.tasks.remove(task)
            for joiner in task.joiners:
                self.wake(joiner)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Run `action` in the hub at `time`; it must not wait."""
        self._tickets += 1
        heapq.heappush(self._timers, (time, self._tickets, action))

    def after_steps(self, steps: int, action: Callable[[], None]) -> None:
        """Run `action` in the hub after this number of further steps of any task."""
        self._kills.append((self.steps + steps, action))
        self._kills.sort(key=lambda each: each[0])

    def point(self) -> None:
        """A scheduling point: another task may run, and time may pass."""
        task = self.current
        if task is None:
            return
        if task.process.dead:
            raise GreenletExit
        if self.random.random() < self.policy.switch:
            if self.policy.pause and self.random.random() < self.policy.pause:
                self.sleep(self.random.random() ** 3 * self.policy.longest)
                return
            self._ready.append(task)
            self._hub.switch()

    def wait(self, deadline: float | None = None) -> bool:
        """Suspend the running task; return whether it was woken before `deadline`."""
        task = self.current
        assert task is not None, "only a task can wait"
        if task.process.dead:
            raise GreenletExit
        self._tickets += 1
        task.ticket, task.woken = self._tickets, False
        if deadline is not None:
            heapq.heappush(self._timers, (max(deadline, self.now), self._tickets, task))
        self._hub.switch()
        return task.woken

    def sleep(self, seconds: float) -> None:
        self.wait(self.now + max(0.0, seconds))

    def wake(self, task: Task) -> None:
        """Let a waiting task continue; no effect on another one."""
        if task.ticket:
            task.ticket, task.woken = 0, True
            self._ready.append(task)

    def kill(self, process: Process) -> None:
        """End all tasks of `process` where they stand; called in the hub.

        Their `finally` blocks run and change nothing: every stand-in and simulated device ignores
        a dead process.
        """
        assert getcurrent() is self._hub, "only the hub kills"
        process.dead = True
        for task in list(process.tasks):
            if not task.done:
                task.ticket = 0
                self.current = task
                task.run.throw(GreenletExit)
        self.current = None
        process.tasks.clear()
        self._ready = [each for each in self._ready if not each.process.dead]

    def run(self, done: Callable[[], bool], limit: float) -> bool:
        """Run until `done`, asked whenever the clock moves; return false at time `limit`."""
        while True:
            while self._ready:
                self._step(self._choose())
            if done():
                return True
            if not self._advance(limit):
                return False

    def _step(self, task: Task) -> None:
        self.steps += 1
        if self._kills and self._kills[0][0] <= self.steps:
            action = self._kills.pop(0)[1]
            self._ready.append(task)
            action()
            return
        if task.process.frozen_until > self.now:
            self._tickets += 1
            task.ticket = self._tickets
            heapq.heappush(self._timers, (task.process.frozen_until, task.ticket, task))
            return
        self.current = task
        task.run.switch()
        self.current = None

    def _choose(self) -> Task:
        ready = self._ready
        if len(ready) == 1:
            return ready.pop()
        if not self.policy.by_priority:
            at = int(self.random.random() * len(ready))
        else:
            at = max(range(len(ready)), key=lambda each: ready[each].priority)
            if self.random.random() < 0.1:
                ready[at].priority = self.random.random()
        ready[at], ready[-1] = ready[-1], ready[at]
        return ready.pop()

    def _advance(self, limit: float) -> bool:
        """Move the clock to the next deadline; return false when it is past `limit`."""
        timers = self._timers
        while timers:
            time, ticket, due = timers[0]
            if isinstance(due, Task) and due.ticket != ticket:
                heapq.heappop(timers)
                continue
            if time > limit:
                break
            self.now = max(self.now, time)
            heapq.heappop(timers)
            if isinstance(due, Task):
                due.ticket = 0
                self._ready.append(due)
            else:
                due()
            return True
        self.now = limit
        return False

    def stacks(self, processes: list[Process]) -> list[str]:
        """The stack of every task of `processes` that has not ended."""
        found = []
        for process in processes:
            for task in process.tasks:
                frame = task.run.gr_frame
                if frame is None:
                    continue
                lines = [
                    f"{each.filename.rpartition('/gateway/')[2]}:{each.lineno} {each.name}"
                    for each in traceback.extract_stack(frame)
                    if "/tests/simulation/" not in each.filename
                ]
                found.append(f"{process.name} {task.name}: " + " > ".join(lines))
        return found

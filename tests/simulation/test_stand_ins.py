"""The stand-ins behave as the real ones, in simulated time, and a kill ends a task at once."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.installing import installed
from tests.simulation.scheduler import Policy, Process, Scheduler
from tests.simulation.stand_ins import Condition, Event, Lock, Thread, monotonic, sleep

POLICY = Policy(switch=0.5)


def run(*functions: Callable[[], object], seed: int = 0, limit: float = 100.0) -> Scheduler:
    """Run the functions as tasks of one process until all have ended, or until `limit`."""
    scheduler = Scheduler(seed, POLICY)
    process = Process("p")
    with installed(scheduler, {}, {}):
        for function in functions:
            scheduler.spawn(function.__name__, process, function)
        scheduler.run(lambda: not process.tasks, limit)
    return scheduler


def test_a_lock_excludes_in_every_order() -> None:
    for seed in range(50):
        lock, inside, most = Lock(), [0], [0]

        def work(lock: Lock = lock, inside: list[int] = inside, most: list[int] = most) -> None:
            for _ in range(5):
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    sleep(0.01)
                    inside[0] -= 1

        assert not run(work, work, work, seed=seed).failures
        assert most == [1]


def test_a_condition_wakes_its_waiter_or_times_out() -> None:
    seen: list[tuple[float, bool]] = []
    condition, ready = Condition(), [False]

    def wait() -> None:
        with condition:
            seen.append((monotonic(), bool(condition.wait_for(lambda: ready[0], 2.0))))
            seen.append((monotonic(), bool(condition.wait_for(lambda: ready[0], 9.0))))

    def notify() -> None:
        sleep(5.0)
        with condition:
            ready[0] = True
            condition.notify_all()

    run(wait, notify)

    assert [found for _, found in seen] == [False, True]
    assert [round(at) for at, _ in seen] == [0, 2]


def test_an_event_and_a_thread_end_in_simulated_time() -> None:
    ended: list[float] = []
    event = Event()

    def main() -> None:
        thread = Thread(target=lambda: event.wait(50.0))
        thread.start()
        thread.join(timeout=3.0)
        ended.append(monotonic())
        event.set()
        thread.join()
        ended.append(monotonic())
        assert not thread.is_alive()

    assert not run(main).failures
    assert ended == [3.0, 3.0]


def test_a_killed_task_changes_nothing_more() -> None:
    scheduler, process, after = Scheduler(0, POLICY), Process("p"), []
    lock = Lock()

    def work() -> None:
        try:
            with lock:
                sleep(10.0)
                after.append("the body")
        finally:
            with lock:
                after.append("the end")

    with installed(scheduler, {}, {}):
        scheduler.spawn("work", process, work)
        scheduler.at(5.0, lambda: scheduler.kill(process))
        scheduler.run(lambda: False, 20.0)

    assert after == []
    assert lock.locked()


def test_tasks_that_wait_for_each_other_show_their_stacks() -> None:
    one, other = Lock(), Lock()
    scheduler, process = Scheduler(0, POLICY), Process("p")

    def take(first: Lock, second: Lock) -> None:
        with first:
            sleep(1.0)
            with second:
                pass

    with installed(scheduler, {}, {}):
        scheduler.spawn("one", process, lambda: take(one, other))
        scheduler.spawn("other", process, lambda: take(other, one))

        assert not scheduler.run(lambda: not process.tasks, 50.0)
        assert len(scheduler.stacks([process])) == 2
        scheduler.kill(process)

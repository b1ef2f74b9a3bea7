"""The search budget of the proofs, in steps of a few microseconds, so that every check ends.

A question is one statement about one target or one pair of targets. Each question has a number of
steps of its own; further steps come from a budget that all questions of one part of the proofs
share. So a few hard questions can be answered, and many easy ones keep their steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from gateway.errors import SearchBudgetExceeded

PER_QUESTION = 300  # steps of each question
PER_QUESTION_LARGE = 1_000  # steps of each question where questions are few
SHARED_BUDGET = 300_000  # steps that the questions share, about a second
MAX_PER_QUESTION = 100_000  # steps that one question may take in all
STEPS_PER_TRANSLATION = 20  # steps for one name translated by a route
SEARCH_TOO_LONG = "the search for an example became too long"


@dataclass(slots=True)
class _Budget:
    """The steps that are left.

    Mutable: owned by the context that called `search_budget`.
    """

    per_question: int
    shared: int
    used: int = 0  # by the current question


_BUDGET: ContextVar[_Budget | None] = ContextVar("search_budget", default=None)


@contextmanager
def search_budget(per_question: int | None = None) -> Iterator[None]:
    """Limit the searches within: steps for each question, and a shared budget.

    Searches outside of such a context are not counted.
    """
    own = PER_QUESTION if per_question is None else per_question
    token = _BUDGET.set(_Budget(own, SHARED_BUDGET))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def start_question() -> None:
    """Begin another question, with steps of its own."""
    if (budget := _BUDGET.get()) is not None:
        budget.used = 0


def spend(steps: int) -> None:
    """Count `steps` for the current question.

    Raises:
        SearchBudgetExceeded: the question has used its own steps, and the shared budget is empty.
    """
    if (budget := _BUDGET.get()) is None:
        return
    before = max(budget.per_question, budget.used)
    budget.used = used = budget.used + steps
    budget.shared -= max(0, used - before)
    spent = budget.shared < 0 and used > budget.per_question
    if spent or used > MAX_PER_QUESTION:
        raise SearchBudgetExceeded("proofs", "a question", "steps", used, MAX_PER_QUESTION)

"""Print a run: `python -m tests.models.nights SEED`."""

from __future__ import annotations

import sys

from tests.models.nights.campaign import Run
from tests.models.nights.reference import Nights

if __name__ == "__main__":
    run = Run(int(sys.argv[1]), Nights())
    contradictions = run.run()
    sys.stdout.writelines(f"{line}\n" for line in (*run.lines, *contradictions))
    sys.exit(bool(contradictions))

"""`python -m gateway.archive.segments ARCHIVE`: convert closed journals to segments."""

from __future__ import annotations

import sys

from gateway.archive.segments.convert import main

sys.exit(main(sys.argv[1:]))

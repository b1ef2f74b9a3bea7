"""Programs that measure; `make bench` runs them all, one after the other."""

import signal

# One that is terminated ends as one that is interrupted: with the programs it started.
signal.signal(signal.SIGTERM, signal.default_int_handler)

"""What every test gets: the Hypothesis profiles, the brokers and one Spark session."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.brokers.activemq", "tests.brokers.mosquitto", "tests.reconcile.sparking"]

settings.register_profile(
    "default", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A run that is terminated ends as one that is interrupted: with the services it started.
signal.signal(signal.SIGTERM, signal.default_int_handler)

"""A yardstick: mq-bridge moves messages by a route; its output has one fixed name."""

import json
import sys

from mq_bridge import Route  # type: ignore[import-not-found]  # installed by who measures it

Route.from_config(json.loads(sys.argv[1])).run()

"""Answers of the SMF broker; clients compare the texts case-sensitively."""

from __future__ import annotations

from typing import Final

from gateway.wire.smf.responses import SmfResponse

UNAUTHORIZED: Final = SmfResponse(401, "Unauthorized")
VPN_NOT_ALLOWED: Final = SmfResponse(403, "Message VPN Not Allowed")
NAME_IN_USE: Final = SmfResponse(403, "Client Name Already In Use")
NAME_PARSE_ERROR: Final = SmfResponse(400, "Client Name Parse Error")

SUBSCRIPTION_PARSE_ERROR: Final = SmfResponse(400, "Subscription Parse Error")
SUBSCRIPTION_EXISTS: Final = SmfResponse(400, "Subscription Already Exists")
SUBSCRIPTION_NOT_FOUND: Final = SmfResponse(400, "Subscription Not Found")
SUBSCRIPTIONS_EXCEEDED: Final = SmfResponse(400, "Max Num Subscriptions Exceeded")
SUBSCRIPTION_DENIED: Final = SmfResponse(403, "Subscription ACL Denied")

PUBLISH_DENIED: Final = SmfResponse(403, "Publish ACL Denied")
NO_MATCH: Final = SmfResponse(503, "No Subscription Match")
OVER_QUOTA: Final = SmfResponse(503, "Spool Over Quota")
TOO_LONG: Final = SmfResponse(400, "Message Too Long")
TOPIC_PARSE_ERROR: Final = SmfResponse(400, "Topic Parse Error")
QUEUE_NOT_FOUND: Final = SmfResponse(400, "Queue Not Found")
UNKNOWN_FLOW: Final = SmfResponse(400, "Unknown Flow Name")

UNKNOWN_QUEUE: Final = SmfResponse(503, "Unknown Queue")
QUEUE_SHUTDOWN: Final = SmfResponse(503, "Queue Shutdown")
MAX_BINDS: Final = SmfResponse(503, "Max clients exceeded for queue")
NOT_ALLOWED: Final = SmfResponse(403, "Permission Not Allowed")
INVALID_SELECTOR: Final = SmfResponse(400, "Invalid Selector")
ALREADY_EXISTS: Final = SmfResponse(400, "Already Exists")
NO_SPACE: Final = SmfResponse(503, "Spool Over Quota")

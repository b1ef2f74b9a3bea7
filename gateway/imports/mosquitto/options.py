"""Options of mosquitto.conf(5), 2.0 and 2.1, and the reasons why some are not imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gateway.imports.source_lines import LineStatus, OmittedLine, SourceLine

OPTION_ALIASES: Final[Mapping[str, str]] = {
    "addresses": "address",
    "clientid": "remote_clientid",
    "username": "remote_username",
    "password": "remote_password",
}
SECRET_OPTIONS = frozenset({"remote_password", "local_password", "bridge_psk", "bridge_identity"})

ALWAYS_OPEN = "a route is always open; start the gateway when it is needed"
NETWORK = "an endpoint has no such setting; use the system's network settings"
TLS = "the version and the cipher are negotiated, TLS 1.2 or newer"

UNSUPPORTED: Final[Mapping[str, str]] = {  # option -> reason
    "bridge_attempt_unsubscribe": "the gateway never unsubscribes; a kept session keeps"
    " its subscriptions",
    "bridge_bind_address": NETWORK,
    "bridge_capath": "an endpoint has one file of CA certificates; concatenate them for `ca_file`",
    "bridge_ciphers": TLS,
    "bridge_ciphers_tls1.3": TLS,
    "bridge_identity": "an endpoint has no pre-shared keys; use certificates",
    "bridge_insecure": "`verify: false` would turn off more than the check of the host name;"
    " write the name in the certificate as `server_hostname` under `tls`",
    "bridge_max_topic_alias": "an endpoint uses no topic aliases",
    "bridge_psk": "an endpoint has no pre-shared keys; use certificates",
    "bridge_reload_type": "the gateway reloads its configuration at SIGHUP",
    "bridge_require_ocsp": "an endpoint checks no OCSP answers",
    "bridge_tcp_keepalive": NETWORK,
    "bridge_tcp_user_timeout": NETWORK,
    "bridge_tls_version": TLS,
    "idle_timeout": ALWAYS_OPEN,
    "start_type": ALWAYS_OPEN,
    "threshold": ALWAYS_OPEN,
    "try_private": "the gateway is a client and not a broker; the origin path prevents loops",
}
NO_EFFECT: Final[Mapping[str, str]] = {  # values that match the behaviour of the gateway
    "bridge_attempt_unsubscribe": "false",
    "bridge_insecure": "false",
    "bridge_require_ocsp": "false",
    "start_type": "automatic",
    "try_private": "false",
}
TRUTHS: Final = frozenset(  # one word, true, false, 1 or 0; the last line decides
    {
        "bridge_attempt_unsubscribe",
        "bridge_insecure",
        "bridge_outgoing_retain",
        "bridge_require_ocsp",
        "bridge_tls_use_os_certs",
        "cleansession",
        "local_cleansession",
        "notifications",
        "notifications_local_only",
        "round_robin",
        "try_private",
    }
)
NUMBERS: Final = frozenset(  # one word; the last line decides
    {
        "bridge_max_packet_size",
        "bridge_max_topic_alias",
        "bridge_receive_maximum",
        "bridge_session_expiry_interval",
        "bridge_tcp_user_timeout",
        "idle_timeout",
        "keepalive_interval",
        "threshold",
    }
)
IMPORTED = frozenset(
    {
        "address",
        "bridge_alpn",
        "bridge_cafile",
        "bridge_certfile",
        "bridge_keyfile",
        "bridge_max_packet_size",
        "bridge_outgoing_retain",
        "bridge_protocol_version",
        "bridge_receive_maximum",
        "bridge_session_expiry_interval",
        "bridge_tls_use_os_certs",
        "cleansession",
        "keepalive_interval",
        "local_cleansession",
        "local_clientid",
        "local_password",
        "local_username",
        "notification_topic",
        "notifications",
        "notifications_local_only",
        "remote_clientid",
        "remote_password",
        "remote_username",
        "restart_timeout",
        "round_robin",
    }
)
BRIDGE_OPTIONS = IMPORTED | frozenset(UNSUPPORTED)
BROKER_OPTIONS = frozenset(
    {
        "accept_protocol_versions",
        "acl_file",
        "allow_anonymous",
        "allow_duplicate_messages",
        "allow_zero_length_clientid",
        "auth_plugin",
        "auth_plugin_deny_special_chars",
        "auto_id_prefix",
        "autosave_interval",
        "autosave_on_changes",
        "bind_address",
        "bind_interface",
        "cafile",
        "capath",
        "certfile",
        "check_retain_source",
        "ciphers",
        "ciphers_tls1.3",
        "clientid_prefixes",
        "connection_messages",
        "crlfile",
        "dhparamfile",
        "enable_control_api",
        "enable_proxy_protocol",
        "global_max_clients",
        "global_max_connections",
        "global_plugin",
        "http_dir",
        "keyfile",
        "listener",
        "listener_allow_anonymous",
        "listener_auto_id_prefix",
        "log_dest",
        "log_facility",
        "log_timestamp",
        "log_timestamp_format",
        "log_type",
        "max_connections",
        "max_inflight_bytes",
        "max_inflight_messages",
        "max_keepalive",
        "max_packet_size",
        "max_qos",
        "max_queued_bytes",
        "max_queued_messages",
        "max_topic_alias",
        "max_topic_alias_broker",
        "memory_limit",
        "message_size_limit",
        "mount_point",
        "packet_buffer_size",
        "password_file",
        "per_listener_settings",
        "persistence",
        "persistence_file",
        "persistence_location",
        "persistent_client_expiration",
        "pid_file",
        "plugin",
        "plugin_load",
        "plugin_use",
        "port",
        "protocol",
        "proxy_protocol_v2_require_tls",
        "psk_file",
        "psk_hint",
        "queue_qos0_messages",
        "require_certificate",
        "retain_available",
        "retain_expiry_interval",
        "retry_interval",
        "set_tcp_nodelay",
        "socket_domain",
        "store_clean_interval",
        "sys_interval",
        "tls_engine",
        "tls_engine_kpass_sha1",
        "tls_keyform",
        "tls_version",
        "upgrade_outgoing_qos",
        "use_identity_as_username",
        "use_subject_as_username",
        "use_username_as_clientid",
        "user",
        "websockets_headers_size",
        "websockets_log_level",
        "websockets_origin",
    }
)


def omitted_option(location: SourceLine, written: str) -> OmittedLine:
    """Say why an option that no bridge has is not imported; `written` is the line's first word."""
    name = re.split(r"[^\w.]", written, maxsplit=1)[0]  # `password=x` is one word, and a secret
    reason, status = "it is not a known option of mosquitto.conf", LineStatus.NOT_CARRIED_OVER
    if name == "include_dir":
        reason = "mosquitto reads it in the main file only"
    elif name in BROKER_OPTIONS or name.startswith(("auth_opt_", "plugin_opt_")):
        reason = "it is an option of the broker and not of a bridge"
        status = LineStatus.STAYS_AT_BROKER
    return OmittedLine(location, f"option {name!r}", reason, status)

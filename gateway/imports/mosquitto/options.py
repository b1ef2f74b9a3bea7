"""The options of mosquitto.conf(5), 2.0 and 2.1, and why some have no place in a mapping."""

from __future__ import annotations

from types import MappingProxyType

ALIASES = MappingProxyType(
    {
        "addresses": "address",
        "clientid": "remote_clientid",
        "username": "remote_username",
        "password": "remote_password",
    }
)
SECRETS = frozenset({"remote_password", "local_password", "bridge_psk", "bridge_identity"})

LIVE = "a route is always open; start the gateway when it is needed"
HEALTH = "the bridge published its state as messages; the gateway tells it over HTTP"
NETWORK = "an endpoint has no such setting; use the system's network settings"
TLS = "what both sides have in common is agreed, TLS 1.2 at least"

LOST = MappingProxyType(  # option -> why no endpoint says it
    {
        "bridge_alpn": "an endpoint has no ALPN; give it a port that speaks MQTT alone",
        "bridge_attempt_unsubscribe": "the gateway never unsubscribes; a session that is kept"
        " keeps its subscriptions",
        "bridge_bind_address": NETWORK,
        "bridge_capath": "an endpoint takes one file of authorities; join them and give `ca_file`",
        "bridge_ciphers": TLS,
        "bridge_ciphers_tls1.3": TLS,
        "bridge_identity": "an endpoint has no pre-shared keys; use certificates",
        "bridge_insecure": "`verify: false` would switch off more than the check of the name;"
        " give the certificate's name in `server_hostname` under `tls`",
        "bridge_max_topic_alias": "an endpoint uses no topic aliases",
        "bridge_outgoing_retain": "the RETAIN flag crosses as it is; a route can only leave alone"
        " what was kept from before, with `retained: ignore`",
        "bridge_psk": "an endpoint has no pre-shared keys; use certificates",
        "bridge_reload_type": "the gateway has its own way to reload",
        "bridge_require_ocsp": "an endpoint checks no OCSP answers",
        "bridge_tcp_keepalive": NETWORK,
        "bridge_tcp_user_timeout": NETWORK,
        "bridge_tls_version": TLS,
        "idle_timeout": LIVE,
        "notification_topic": HEALTH,
        "notifications": HEALTH,
        "notifications_local_only": HEALTH,
        "round_robin": "an endpoint has one address; put a balancer before several brokers",
        "start_type": LIVE,
        "threshold": LIVE,
        "try_private": "the gateway is no broker to the other side; the origin path stops loops",
    }
)
SAME = MappingProxyType(  # values that ask for what the gateway does anyway
    {
        "bridge_attempt_unsubscribe": "false",
        "bridge_insecure": "false",
        "bridge_outgoing_retain": "true",
        "bridge_require_ocsp": "false",
        "notifications": "false",
        "round_robin": "false",
        "start_type": "automatic",
        "try_private": "false",
    }
)
CARRIED = frozenset(
    {
        "address", "bridge_cafile", "bridge_certfile", "bridge_keyfile", "bridge_max_packet_size",
        "bridge_protocol_version", "bridge_receive_maximum", "bridge_session_expiry_interval",
        "bridge_tls_use_os_certs", "cleansession", "keepalive_interval", "local_cleansession",
        "local_clientid", "local_password", "local_username", "remote_clientid",
        "remote_password", "remote_username", "restart_timeout",
    }
)  # fmt: skip
BRIDGE = CARRIED | frozenset(LOST)
BROKER = frozenset(
    {
        "accept_protocol_versions", "acl_file", "allow_anonymous", "allow_duplicate_messages",
        "allow_zero_length_clientid", "auth_plugin", "auth_plugin_deny_special_chars",
        "auto_id_prefix", "autosave_interval", "autosave_on_changes", "bind_address",
        "bind_interface", "cafile", "capath", "certfile", "check_retain_source", "ciphers",
        "ciphers_tls1.3", "clientid_prefixes", "connection_messages", "crlfile", "dhparamfile",
        "enable_control_api", "enable_proxy_protocol", "global_max_clients",
        "global_max_connections", "global_plugin", "http_dir", "keyfile", "listener",
        "listener_allow_anonymous", "listener_auto_id_prefix", "log_dest", "log_facility",
        "log_timestamp", "log_timestamp_format", "log_type", "max_connections",
        "max_inflight_bytes", "max_inflight_messages", "max_keepalive", "max_packet_size",
        "max_qos", "max_queued_bytes", "max_queued_messages", "max_topic_alias",
        "max_topic_alias_broker", "memory_limit", "message_size_limit", "mount_point",
        "packet_buffer_size", "password_file", "per_listener_settings", "persistence",
        "persistence_file", "persistence_location", "persistent_client_expiration", "pid_file",
        "plugin", "plugin_load", "plugin_use", "port", "protocol",
        "proxy_protocol_v2_require_tls", "psk_file", "psk_hint", "queue_qos0_messages",
        "require_certificate", "retain_available", "retain_expiry_interval", "retry_interval",
        "set_tcp_nodelay", "socket_domain", "store_clean_interval", "sys_interval", "tls_engine",
        "tls_engine_kpass_sha1", "tls_keyform", "tls_version", "upgrade_outgoing_qos",
        "use_identity_as_username", "use_subject_as_username", "use_username_as_clientid", "user",
        "websockets_headers_size", "websockets_log_level", "websockets_origin",
    }
)  # fmt: skip

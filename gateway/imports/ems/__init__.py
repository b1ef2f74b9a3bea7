"""EMS server files (bridges.conf, topics.conf, transports.conf) to a mapping."""

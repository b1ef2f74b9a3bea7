"""Import of existing bridges: configuration files of EMS and of mosquitto to a mapping."""

"""What people have today, as a mapping: configuration files of EMS and of mosquitto's bridges."""

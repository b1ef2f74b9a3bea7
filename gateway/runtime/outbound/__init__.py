"""The sending side: the threads, sinks and disks around the states of lanes, and dead letters."""

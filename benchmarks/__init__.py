"""Measurements that are no tests: the numbers depend on the machine. `make bench` runs them."""

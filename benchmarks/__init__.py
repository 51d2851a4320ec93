"""Measurements that are no tests: what is measured depends on the machine. `make bench` runs them."""

"""Settings that have to be there before torch is imported."""

import os

# Idle OpenMP threads that spin collapse when another process holds a core (see cli/main.py).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

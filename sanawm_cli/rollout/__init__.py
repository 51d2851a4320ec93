"""The self-forcing loop: schedule, noise, one chunk after another."""

"""From frames to a verified MP4 with its sidecar."""

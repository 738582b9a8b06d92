"""Many detections of one graph: over resolutions, and over seeds."""

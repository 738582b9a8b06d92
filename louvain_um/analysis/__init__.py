"""Many detections of one graph: over resolutions, and over seeds; and stores compared."""

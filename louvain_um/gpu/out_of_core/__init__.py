"""Level 0 in vertex blocks that come and go, where its arcs exceed the device."""

"""Local moving on the device: decide, apply, activate; hubs."""

"""What a machine can do: profiles, calibration, and which figures a plan uses."""

from louvain_um.placement.machine.machine import Machine, load_machine

__all__ = ["Machine", "load_machine"]

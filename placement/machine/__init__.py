"""What a machine can do: profiles, calibration, and which figures a plan uses."""

from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import calibrated_file, load_machine, machine_for

__all__ = ["Machine", "calibrated_file", "load_machine", "machine_for"]

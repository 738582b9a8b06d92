"""What a machine can do: profiles, calibration, and which figures a plan uses."""

from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.machine_files import load_machine

__all__ = ["Machine", "load_machine"]

"""What a sweep's figures rest on, in sentences for its reader."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from louvain_um.placement.machine.machine import Machine

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.points import Settings, Subject


def assumptions_of(
    subjects: Sequence[Subject], settings: Settings, machines: dict[str, Machine]
) -> list[str]:
    """Return what the figures rest on."""
    sentences = []
    for machine in machines.values():
        sentences.append(
            f"machine {machine.name}: {machine.notes.get('all', 'as calibrate measured')}"
        )
    sentences += evidence_assumptions(
        [*["modelled"] * bool(settings.gpus), *["measured"] * (settings.device is not None)]
    )
    for subject in subjects:
        if subject.scale is not None:
            sentences.append(
                f"{subject.name}: a generated stand-in, {subject.graph.n_vertices:,} vertices and "
                f"{subject.graph.n_arcs:,} arcs, {subject.scale:.3g} of the original's vertices"
            )
    return sentences


def evidence_assumptions(kinds: Container[str]) -> list[str]:
    """Return what measured or modelled points rest on, or both."""
    sentences = []
    if "modelled" in kinds:
        sentences.append(
            "modelled: page touches recorded from a run of the CPU engine, replayed by a model of "
            "NVIDIA's driver; memory is (1 - oversubscription) of the recorded program's peak, or "
            "of what its plan lays out where the program makes room itself"
        )
    if "measured" in kinds:
        sentences.append(
            "measured: device memory kept to (1 - oversubscription) of what the plan lays out, by "
            "the program itself, which moves blocks; the driver never has to evict"
        )
    return sentences

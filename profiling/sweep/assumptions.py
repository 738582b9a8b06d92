"""The assumptions behind a sweep's figures, in sentences."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from louvain_um.placement.machine.machine import Machine

if TYPE_CHECKING:
    from louvain_um.profiling.sweep.points import Settings, Subject


def assumptions_of(
    subjects: Sequence[Subject], settings: Settings, machines: dict[str, Machine]
) -> list[str]:
    """Return one sentence per assumption: machines, evidence, tiny percentages, stand-ins."""
    sentences = []
    for machine in machines.values():
        sentences.append(
            f"machine {machine.name}: {machine.notes.get('all', 'as calibrate measured')}"
        )
    sentences += evidence_assumptions(
        [*["modelled"] * bool(settings.gpus), *["measured"] * (settings.device is not None)]
    )
    few = [f"{rate:g}" for rate in settings.rates if 0 < rate < 1]
    if few:
        sentences.append(
            f"oversubscriptions are in percent: {', '.join(few)} is less than one percent, and 30 "
            "would be 30 %"
        )
    for subject in subjects:
        vertices, arcs = subject.size
        if vertices is None:
            sentences.append(
                f"{subject.name}: a program of one's own; its page touches follow from what it "
                "declares"
            )
        elif subject.scale is not None:
            sentences.append(
                f"{subject.name}: a generated stand-in, {vertices:,} vertices and {arcs:,} arcs, "
                f"{subject.scale:.3g} of the original's vertices"
            )
    return sentences


def evidence_assumptions(kinds: Container[str]) -> list[str]:
    """Return the assumptions of measured points, of modelled ones, or of both."""
    sentences = []
    if "modelled" in kinds:
        sentences.append(
            "modelled: page touches recorded from a run of the CPU engine, replayed by a model of "
            "NVIDIA's driver; device memory is (1 - oversubscription) of the in-core footprint "
            "that the program's plan states or, without a plan, of the recorded arrays' peak"
        )
    if "measured" in kinds:
        sentences.append(
            "measured: the program keeps to a budget of (1 - oversubscription) of the in-core "
            "footprint that its plan states and moves blocks itself; the driver never evicts"
        )
    return sentences

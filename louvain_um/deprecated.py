"""Public names that moved: the old ones work for one release, with a `DeprecationWarning`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, cast

MODULES: Final[Mapping[str, str]] = {
    "louvain_um.communities": "louvain_um.results.communities",
    "louvain_um.comparison": "louvain_um.results.comparison",
    "louvain_um.dynamic.stores.device_rows": "louvain_um.dynamic.stores.on_device.rows",
    "louvain_um.estimator": "louvain_um.interop.estimator",
    "louvain_um.formats.label_reader": "louvain_um.formats.labels.reader",
    "louvain_um.gpu.device": "louvain_um.gpu.runtime.device",
    "louvain_um.networkx_backend": "louvain_um.interop.networkx_backend",
    "louvain_um.placement.calibrate": "louvain_um.placement.machine.calibrate",
    "louvain_um.placement.machine_choice": "louvain_um.placement.machine.machine_choice",
    "louvain_um.placement.planned": "louvain_um.placement.plan",
    "louvain_um.placement.policy_files": "louvain_um.placement.policy.policy_files",
    "louvain_um.profiling.events": "louvain_um.profiling.session.events",
    "louvain_um.profiling.profiler": "louvain_um.profiling.record.profiler",
    "louvain_um.profiling.recorder": "louvain_um.profiling.access.recorder",
    "louvain_um.profiling.replays": "louvain_um.profiling.sweep.replay",
    "louvain_um.profiling.simulated": "louvain_um.profiling.simulator.to_session",
    "louvain_um.profiling.storage": "louvain_um.profiling.session.storage",
    "louvain_um.profiling.tracer": "louvain_um.profiling.sources.tracer",
    "louvain_um.quality": "louvain_um.results.quality",
    "louvain_um.rules": "louvain_um.core.rules",
}
"""Old path of a module → its current path."""

NAMES: Final[Mapping[str, str]] = {
    "louvain_um.placement.placer:Work": "louvain_um.placement.smart:Work",
    "louvain_um.placement.placer:host_residency": "louvain_um.placement.smart:host_residency",
    "louvain_um.placement.placer:is_host_resident": "louvain_um.placement.smart:is_host_resident",
    "louvain_um.placement.placer:smart_malloc": "louvain_um.placement.smart:smart_malloc",
    "louvain_um.placement.placer:initialise": "louvain_um.placement.smart:initialise",
    "louvain_um.placement.placer:placement_of": "louvain_um.placement.smart:placement_of",
    "louvain_um.profiling.session:Session": "louvain_um.profiling.facade:Session",
    "louvain_um.profiling.simulator:Way": "louvain_um.profiling.simulator:Access",
    "louvain_um.profiling.simulator:join": "louvain_um.profiling.simulator:concatenate_touches",
    "louvain_um.profiling.sources.tracer:Trace": (
        "louvain_um.profiling.sources.tracer:TracedAccesses"
    ),
    "louvain_um.profiling.sources.tracer:Uses": "louvain_um.profiling.sources.tracer:AccessCounts",
    "louvain_um.profiling.session:load": "louvain_um.profiling.facade:load",
    "louvain_um.profiling.views.sweep:Sweep": "louvain_um.profiling.sweep.results:Sweep",
    "louvain_um.profiling.views.sweep:gains": "louvain_um.profiling.sweep.results:gains",
    "louvain_um.profiling.views.sweep:read": "louvain_um.profiling.sweep.files:read",
}
"""``module:name`` under its old name, in the module's path now → ``module:name`` as it is now."""


def resolve(module: str, name: str) -> Any:
    """Return the object behind an old name of a module, and warn."""
    current = NAMES.get(f"{module}:{name}")
    if current is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    home, _, now = current.partition(":")
    _warn(f"{module}.{name}", f"{home}.{now}", 4)
    return getattr(import_module(home), now)


def getattr_of(module: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that finds its old names."""
    return lambda name: resolve(module, name)


class _Alias(ModuleType):
    """A module under its old path: every name is the current module's."""

    def __init__(self, name: str, current: str) -> None:
        super().__init__(name)
        self.__dict__["_current"] = current

    def __getattr__(self, name: str) -> Any:
        current = self.__dict__["_current"]
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{current}:{name}" in NAMES:
            return resolve(current, name)
        return getattr(import_module(current), name)

    def __dir__(self) -> list[str]:
        return dir(import_module(self.__dict__["_current"]))


class _Finder:
    """Imports the old paths of modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, cast(Any, self)) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        _warn(spec.name, MODULES[spec.name], 3)
        return _Alias(spec.name, MODULES[spec.name])

    def exec_module(self, module: ModuleType) -> None:
        pass


def _warn(old: str, new: str, level: int) -> None:
    """Warn the caller with the current name."""
    warnings.warn(
        f"{old} is now {new}; the old name goes with the next release",
        DeprecationWarning,
        stacklevel=level,
    )


FINDER: Final = _Finder()

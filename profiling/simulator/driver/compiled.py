"""How the simulator's parts are compiled."""

from __future__ import annotations

from typing import Any

from louvain_um.core.compiled import kernel

#: Without Numba's counts of references: these functions allocate nothing and their arrays belong
#: to the caller, while an atomic step up and down at every use of a row took half of a replay.
_OPTIONS: dict[str, Any] = {"_nrt": False}

compiled: Any = kernel(**_OPTIONS)

#: The same, put into its callers by LLVM: handing over the state, nineteen arrays, costs as much
#: as serving a block.
inlined: Any = kernel(**_OPTIONS, forceinline=True)

"""Rewritten modules on disk: parsing PTX takes seconds and is done once."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from louvain_um.gpu.runtime import image_cache
from louvain_um.gpu.runtime.nvrtc import Image
from louvain_um.profiling.sources.tracer.rewrite import Rewritten, rewrite


def rewritten(ptx: str, *, log: bool = False) -> Rewritten:
    """Return an instrumented module: from the cache, or rewritten now and cached."""
    text = f"{_edition()} {log}\n{ptx}"
    key = hashlib.sha256(text.encode()).hexdigest()[:40]
    file = image_cache.cache_folder() / f"{key}.rewritten"
    found = image_cache.load(file)
    if found is not None:
        about = json.loads(found.names["about"])
        return Rewritten(
            found.code.decode(), tuple(about["functions"]), about["sites"], about["left"]
        )
    done = rewrite(ptx, log=log)
    about = {"functions": done.functions, "sites": dict(done.sites), "left": dict(done.left)}
    image_cache.save(file, Image(done.text.encode(), {"about": json.dumps(about)}))
    return done


@cache
def _edition() -> str:
    """Return a digest of the code that rewrites."""
    total = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        total.update(source.read_bytes())
    return total.hexdigest()

"""Compile every kernel for four generations of devices, and note that.

    python -m tests.gpu_host.compiled_units [--seconds N]

With `--seconds`, compilation starts for so long only. What is left then is an error, unless the
evidence of GPU tests is pending: their next run compiles everything.

What a compiler makes of a source depends on the source, its headers, the kernels asked for, the
options and the compiler's version. `compiled.txt` keeps a digest of them for each source and
architecture, so that only what has changed since is compiled. Without the file, everything is.
"""

import argparse
import hashlib
import json
import math
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from louvain_um.gpu.runtime import compile_cache, kernel_list
from tests.gpu_evidence import EVIDENCE

ARCHITECTURES: Final = (75, 80, 90, 100)

UNITS: Final = [
    (source, types)
    for source in sorted(kernel_list.CATALOGUE)
    for types in kernel_list.types_of(source)
]
"""Source and types of all kernels."""

NOTES: Final = Path(__file__).with_name("compiled.txt")


def images(source, types):
    """Return the C++ names of kernels by what is compiled at a time, and cached as one image."""
    return kernel_list.units(kernel_list.together(source, types))


def note(source, architecture):
    """Return a line for what compiling all units of a source would make."""
    target, total = compile_cache.target(architecture), hashlib.sha256()
    for name, types in UNITS:
        if name == source:
            for names in images(source, types):
                made = compile_cache.digest(source, names, target, compile_cache.FOLDER)
                total.update(made.encode())
    return f"{source} {architecture} {total.hexdigest()[:40]}"


def compile_unit(job):
    """Compile some kernels of a source, unless their image is cached."""
    source, names, architecture = job
    image = compile_cache.cached_image(source, names, compile_cache.target(architecture))
    assert image.code.startswith(b"\x7fELF")
    assert sorted(image.names) == sorted(names)


def noted():
    return set(NOTES.read_text().splitlines()) if NOTES.exists() else set()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=math.inf)
    until = time.monotonic() + parser.parse_args().seconds
    known = noted()
    notes = {(s, a): note(s, a) for s in kernel_list.CATALOGUE for a in ARCHITECTURES}
    units = [(source, names) for source, types in UNITS for names in images(source, types)]
    jobs = [(s, names, a) for s, names in units for a in ARCHITECTURES if notes[s, a] not in known]
    jobs.sort(key=lambda job: hashlib.sha256(repr(job).encode()).digest())  # a bit of everything
    print(f"{len(jobs)} of {len(units) * len(ARCHITECTURES)} images to compile", file=sys.stderr)

    def compile_in_time(job):
        if time.monotonic() < until:
            compile_unit(job)
            return True
        return False

    # NVRTC releases the GIL, so that threads compile side by side.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = sum(pool.map(compile_in_time, jobs))
    if done == len(jobs):
        NOTES.write_text("".join(f"{line}\n" for line in sorted(notes.values())))
    else:
        print(f"{len(jobs) - done} images were left", file=sys.stderr)
        sys.exit("pending" not in json.loads(EVIDENCE.read_text()))


if __name__ == "__main__":
    main()

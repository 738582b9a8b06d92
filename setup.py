"""Build of wheels: with the library that `attach` loads, where the machine has a C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ATTACH = Path("louvain_um", "profiling", "attach")
OPTIONS = ("-O2", "-shared", "-fPIC", "-pthread")


def compiler() -> str | None:
    """Return the system's C compiler, on Linux."""
    names = (os.environ.get("CC"), "cc", "gcc", "clang") if sys.platform == "linux" else ()
    return next(filter(None, (shutil.which(name) for name in names if name)), None)


class BuildWithLibrary(build_py):
    """Compiles the library; without it, the first `attach` does."""

    def run(self) -> None:
        """Copy the package's files, and compile one."""
        super().run()
        found = compiler()
        if found is None or self.editable_mode:
            return
        target = Path(self.build_lib) / ATTACH / "inject.so"
        command = [found, *OPTIONS, str(ATTACH / "inject.c"), "-o", str(target), "-ldl"]
        if subprocess.run(command).returncode:
            print("attach's library was not compiled; its first use will try again")


class Package(Distribution):
    """For one platform, if it holds the library."""

    def has_ext_modules(self) -> bool:
        """Return whether anything is compiled."""
        return compiler() is not None


class Wheel(bdist_wheel):
    """For any Python 3: the library does not use Python's interface."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tags of Python, its interface and the platform."""
        return "py3", "none", super().get_tag()[2]


setup(distclass=Package, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": Wheel})

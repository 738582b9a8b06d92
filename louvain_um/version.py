"""The version, on its own, so that any module can say it without importing the package."""

__version__ = "0.1.0"

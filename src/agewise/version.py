"""The version of the package, which every result names."""

__version__ = "0.1.0"

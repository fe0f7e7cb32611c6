"""Modules that need Flower or PyTorch are looked at only where these are installed."""

from importlib.util import find_spec

_NEEDED = {"flwr": "src/agewise/flower", "torch": "src/agewise/learn/neural"}
collect_ignore = [folder for package, folder in _NEEDED.items() if not find_spec(package)]

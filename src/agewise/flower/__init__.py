"""The same policies on a live federation: Flower, or a server of your own.

Names are imported when first used: links and `RoundPlanner` need no Flower.
"""

import lazy_loader

from agewise.dependencies import require

_attach, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_NEED_FLOWER = ("Scheduled", "Timeouts", "identify")


def __getattr__(name: str) -> object:
    if name in _NEED_FLOWER:
        require("flwr", "flower")
    return _attach(name)

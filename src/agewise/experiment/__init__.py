"""Experiments: policies x seeds x variations, run on an engine, resumed, summed up.

Names are imported when first used; `__init__.pyi` says where each of them lives.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Age-based scheduling of federated learning over wireless channels.

Names are imported when first used, so that `import agewise` and `agewise --help` need not wait for
Numba, Polars and SciPy; `__init__.pyi` says where each of them lives.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

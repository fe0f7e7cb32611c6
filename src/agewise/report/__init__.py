"""What people look at, made from records alone: one page, figures for papers, words of numbers.

Names are imported when first used, so that words of numbers need not wait for Matplotlib.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

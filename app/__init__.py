"""The workshop: a web page on which fusion is learnt by moving sliders.

It imports itself relatively and fusesim absolutely, since it is `app` in a checkout and `fusesim.app` installed.
"""

from .factory import create_app

__all__ = ["create_app"]

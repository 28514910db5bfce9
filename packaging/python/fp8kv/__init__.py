"""The program fp8kv comes with this package as a script: run `fp8kv --help`.

There is nothing to import but the version.
"""
from importlib.metadata import version

__version__ = version("fp8kv")
__all__ = ["__version__"]

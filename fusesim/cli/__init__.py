"""The command line: one file per command, no arithmetic.

Exit codes: 0 done, 1 bad input (one sentence on stderr), 2 a command line that cannot be parsed.
"""

from fusesim.cli.main import main

__all__ = ["main"]

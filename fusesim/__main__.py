"""``python -m fusesim`` is the command line."""

import sys

from fusesim.cli import main

sys.exit(main())

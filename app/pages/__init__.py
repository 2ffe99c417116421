"""The pages of the workshop, one module each: what it shows at which path, and how it is wired."""

from __future__ import annotations

from typing import Final

from .accuracy import accuracy
from .chain import chain
from .devices import devices
from .plans import plans
from .program import program
from .roofline import roofline

PAGES: Final = (chain, roofline, plans, program, accuracy, devices)
"""What makes each page, the first one's first, from a catalogue of devices."""

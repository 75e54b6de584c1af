"""Tests of training share ``tiny``: a model, records and plans that run in a fraction of a second."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # so that tests, and the processes they start, can import tiny

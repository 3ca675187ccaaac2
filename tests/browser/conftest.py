"""TCEC's own viewer is no part of this repository: its tests run where a checkout is named."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("FARM_TCECGUI") else ["test_tcecgui.py"]

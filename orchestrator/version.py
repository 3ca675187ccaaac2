"""The version of this farm, as it is written into the journal."""

from __future__ import annotations

import importlib.metadata

VERSION = importlib.metadata.version("tournament-farm")

"""Reference data that may lie beside a checkout; tests that need it skip without."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared"

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the shared reference data is not beside this checkout"
)

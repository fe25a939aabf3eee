"""The servers that these tests talk to lie beside them and are imported by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

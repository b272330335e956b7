"""`python -m erlib`."""

import sys

from erlib.cli import main

sys.exit(main())

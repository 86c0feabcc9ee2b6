"""``python -m bilateral`` is the command ``bilateral``."""

import sys

from bilateral.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

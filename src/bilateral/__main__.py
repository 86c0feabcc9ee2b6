"""Run the command `bilateral` as ``python -m bilateral``."""

import sys

from bilateral.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m strom` is the `strom` command."""

import sys

from strom.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m strom.cli.demo` is `strom demo`."""

import sys

from strom.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))

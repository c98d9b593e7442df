"""The command of this package: python -m servecast, or the script `servecast`."""

import os
import sys

from servecast import command


def main() -> None:
    os.execv(command(), [command(), *sys.argv[1:]])


if __name__ == "__main__":
    main()

"""Run the command `simllm` as `python -m simllm`."""

import sys

from simllm.cli import main

sys.exit(main())

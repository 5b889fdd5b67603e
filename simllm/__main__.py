"""`python -m simllm` is the command `simllm`."""

import sys

from simllm.cli import main

sys.exit(main())

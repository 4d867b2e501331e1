"""`python -m pipeline`: the command line."""

import sys

from pipeline.cli.main import main

sys.exit(main())

"""`python -m planaria.cli` is `planaria`."""

from planaria.cli.main import main

raise SystemExit(main())

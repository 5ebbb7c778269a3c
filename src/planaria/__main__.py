"""`python -m planaria` is `planaria`."""

from planaria.cli.main import main

raise SystemExit(main())

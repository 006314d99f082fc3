"""python -m hakmem."""

from hakmem.entry import main

raise SystemExit(main())

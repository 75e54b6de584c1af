"""Several processes: who there is, sums over all of them, and models cut over them (FSDP2)."""

"""reporting: figures."""

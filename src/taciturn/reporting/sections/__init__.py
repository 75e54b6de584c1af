"""reporting: sections."""

"""Figures of CRT (Zhao, Li, Wang 2022)."""

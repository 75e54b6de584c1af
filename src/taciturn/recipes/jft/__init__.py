"""Figures and tables of JFT (Shi et al. 2022)."""

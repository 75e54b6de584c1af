"""Figures and tables of UeDP (Lai et al. 2022)."""

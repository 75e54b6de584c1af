"""Sections of the report: each turns what a run left into numbers and short words."""

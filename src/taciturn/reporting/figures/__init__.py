"""Figures of the report: plots as pure functions from numbers to inline SVG."""

"""Measurements that docs/benchmarks.md quotes. A package of its own, so that another of this name (Opacus has one) does not
come before it."""

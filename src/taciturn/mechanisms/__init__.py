"""Mechanisms: each is a configuration and a pure function from a screened corpus to a plan."""

MECHANISMS = ("crt", "dpsgd", "jft", "redacted", "sgd")
"""Their names; the module of that name holds Config, plan and SUMMARY."""

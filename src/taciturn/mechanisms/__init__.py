"""Mechanisms: each is a file with a configuration and two pure functions, from a screened corpus to a plan, and from what
was run to what may be said of it."""

MECHANISMS = (
    "crt",
    "crt_residual",
    "dpsgd",
    "jft",
    "redacted",
    "selective_dpsgd",
    "sgd",
    "uedp",
    "uedp-published",
    "user_dp",
)
"""Their names. The module of that name (a dash is an underscore) holds SUMMARY, Config, plan and guarantees; units and facts
too where it draws anything but records."""

WITHOUT_CORPUS = ("own-loop",)
"""What runs on records of its own and not on a screened corpus: no command plans it, and a certificate may name it."""

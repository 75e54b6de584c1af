"""How good synthetic text is, beside original text. What is measured here is of private text: for its owner alone, and no
statement of a certificate covers it (docs/guarantees.md, §3.8).
"""

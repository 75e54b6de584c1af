"""Per-record gradient norms and clipped sums in one backward pass, one rule per layer type.

Shapes: B records, T positions, d inputs, p outputs, V rows of an embedding, H hidden units.
"""

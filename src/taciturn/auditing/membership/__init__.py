"""Membership: which records a model was trained on, by their losses, by groups, or by their gradients."""

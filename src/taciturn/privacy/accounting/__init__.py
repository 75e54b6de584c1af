"""Accounting: from events to privacy curves, rounded upwards; events and pairs of one step, composition, calibration."""

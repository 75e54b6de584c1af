"""Measuring policies: samples, labels judged, recall with bounds, and previews."""

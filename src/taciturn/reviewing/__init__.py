"""People label a sample or correct redactions on a local page; their files merge, with agreement statistics."""

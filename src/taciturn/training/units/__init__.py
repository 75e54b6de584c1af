"""Units of privacy above the record: users and entities, their rows, and what removing one deletes."""

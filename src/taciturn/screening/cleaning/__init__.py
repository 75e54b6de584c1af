"""Cleaning: copies and near-duplicates that are left out before anything is screened."""

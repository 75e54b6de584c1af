"""Certificates: ledger, certificate, signature, and computing all of it again from the files."""

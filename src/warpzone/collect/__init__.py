"""Collectors: serial, double-buffered, overlapped with learning."""

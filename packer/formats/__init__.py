"""The writers, one module a format."""

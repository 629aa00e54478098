"""The bytes on disk, one pure module a format; each docstring is the specification."""

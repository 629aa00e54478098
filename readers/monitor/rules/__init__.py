"""The rules of the diagnosis: one small function each, from figures to a finding or None."""

"""What carries a conversion out."""

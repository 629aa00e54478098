"""What people write by hand to pack a tree: one script a library, each its own process."""

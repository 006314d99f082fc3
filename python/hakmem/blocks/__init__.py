"""Single blocks: where each is and in which state, what it contains, what points at it, and what nothing
reaches."""

"""What requests cost, and what changed."""

"""What changed between two bills: exact parts, who drove them, and how to say it."""

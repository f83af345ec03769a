"""What the commands ask of a case: one module a question, small results out, nothing printed."""

"""Kinds of OTLP spans: one module each with a ``KIND``; this folder is the list."""

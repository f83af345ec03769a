"""Printers: the same plain values as terminal text, JSON, CSV, Markdown and one HTML file."""

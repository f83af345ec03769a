"""Analyses: one SQL file each; Python beside them for what SQL cannot say. See README.md."""

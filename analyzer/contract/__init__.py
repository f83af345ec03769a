"""The contract: every table, native log format and command output, with doc and unit.

Imports nothing of ours; everything else may import it. ``schemas/`` is generated from here.
"""

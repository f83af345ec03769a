"""How far from the hardware: the bounds of what ran, against what was observed."""

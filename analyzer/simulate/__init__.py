"""Logs in the formats that real systems write, with known truth behind them."""

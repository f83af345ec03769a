"""``prices.json``: what the world's models cost."""

from __future__ import annotations

from pathlib import Path

from analyzer.simulate.money import prices_of
from analyzer.simulate.outcome import Base
from analyzer.simulate.world import Log, World
from analyzer.simulate.writers import prices


def recorder(folder: Path, log: Log, world: World) -> Base:
    """Written at once: prices do not depend on what happens."""
    models = {
        model: {kind: format(price, "f") for kind, price in kinds.items()}
        for model, kinds in prices_of(world.prices).items()
    }
    path = folder / (log.file or "prices.json")
    path.write_text(prices(models) + "\n", encoding="utf-8", newline="\n")
    return Base()

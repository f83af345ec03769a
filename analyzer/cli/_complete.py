"""What the Tab key offers: slow imports happen when it is pressed, and a failure offers nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click

    Offer = list[str]


def _begin(names: Iterable[str], typed: str) -> list[str]:
    return sorted(name for name in names if name.startswith(typed))


def rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Ids of rules; a path that follows is the shell's own business."""
    del ctx, param
    with suppress(Exception):
        from analyzer import api

        return _begin(api.rules(), incomplete)
    return []


def readers(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Names of readers."""
    del ctx, param
    with suppress(Exception):
        from analyzer import api

        return _begin((row["name"] for row in api.formats().rows), incomplete)
    return []


def tables(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Names of tables and analyses."""
    del ctx, param
    with suppress(Exception):
        from analyzer import api

        return _begin({row["table"] for row in api.schema().rows}, incomplete)
    return []


def groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Keys of ``latency --by``; the last of a list is completed."""
    del ctx, param
    with suppress(Exception):
        from analyzer import api

        return _last(api.groups(), incomplete)
    return []


def costs(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Keys of ``cost --by``."""
    del ctx, param
    with suppress(Exception):
        from analyzer import api

        return _last(api.cost_groups(), incomplete)
    return []


def _last(names: Iterable[str], incomplete: str) -> list[str]:
    before, comma, typed = incomplete.rpartition(",")
    taken = before.split(",")
    begun = _begin((name for name in names if name not in taken), typed)
    return [f"{before}{comma}{name}" for name in begun]


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Models of the catalog."""
    del ctx, param
    return _catalogued("models", incomplete)


def gpus(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Accelerators of the catalog."""
    del ctx, param
    return _catalogued("gpus", incomplete)


def weights(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Weight formats."""
    del ctx, param
    return _catalogued("weights", incomplete)


def _catalogued(kind: str, incomplete: str) -> Offer:
    with suppress(Exception):
        from analyzer import api

        return _begin(api.catalogued(kind), incomplete)
    return []

"""The native price file."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Time = str | float | int
Money = str | float | int | None


class TierPrice(Struct, kw_only=True):
    """Prices of a tier, in US dollars per million tokens."""

    input: Money = None
    cache_read: Money = None
    cache_write_short: Money = None
    cache_write_long: Money = None
    output: Money = None


class LongContext(Struct, kw_only=True):
    """Prices of a whole request whose prompt is strictly above ``above_input_tokens``."""

    above_input_tokens: int
    input: Money = None
    cache_read: Money = None
    cache_write_short: Money = None
    cache_write_long: Money = None
    output: Money = None


Tier = Annotated[
    TierPrice | str | float | int | None,
    Meta(description="prices of that tier, or a factor on the prices without it, as 0.5"),
]
Discount = Annotated[
    str | float | int | None,
    Meta(
        description="share taken off the list prices of what this file gives no price for, 0 to 1"
    ),
]


class Terms(Struct, kw_only=True):
    """What holds for every model of a provider."""

    valid_from: Time | None = None
    discount: Discount = None
    batch: Tier = None
    flex: Tier = None
    priority: Tier = None
    fast: Tier = None


class ModelPrice(Struct, kw_only=True):
    """Unit prices of one model, as they are paid: no discount is taken off them."""

    input: Money = None
    cache_read: Money = None
    cache_write_short: Money = None
    cache_write_long: Money = None
    output: Money = None
    reasoning: Annotated[Money, Meta(description="where it differs from output")] = None
    input_audio: Money = None
    output_audio: Money = None
    input_image: Money = None
    output_image: Money = None
    web_search: Annotated[Money, Meta(description="per thousand searches")] = None
    long_context: LongContext | None = None
    provider: Annotated[str | None, Meta(description="only when paid to this vendor")] = None
    valid_from: Annotated[Time | None, Meta(description="in place of the file's")] = None
    discount: Discount = None
    batch: Tier = None
    flex: Tier = None
    priority: Tier = None
    fast: Tier = None


class Prices(Struct, kw_only=True):
    """``prices.json`` or ``.toml``: unit prices that beat the price book."""

    unit: Literal["per_million_tokens"]
    models: Annotated[
        dict[str, ModelPrice | list[ModelPrice]],
        Meta(description="its prices, or a list of them with the date each begins"),
    ] = {}
    providers: Annotated[
        dict[str, Terms | list[Terms]], Meta(description="terms of a contract; * = every provider")
    ] = {}
    currency: str = "USD"
    valid_from: Time | None = None

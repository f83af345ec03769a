"""Reads numbers out of a config whose families spell them differently."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from analyzer.errors import AnalyzerError

_LARGEST = 10**12


class Fields:
    """A config with typed access; foreign JSON, so nothing is trusted."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Wrap a parsed ``config.json``, nested text config already merged."""
        self._config = config

    def filled(self, defaults: Mapping[str, Any]) -> Fields:
        """The same config, with the family's defaults where it is silent."""
        return Fields({**defaults, **self._config})

    def whole(self, *names: str) -> int | None:
        """First of the names that holds a whole number of at least 0."""
        for name in names:
            value = self._config.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
                return value
        return None

    def need(self, *names: str) -> int:
        """The same, above 0; :class:`AnalyzerError` names what is missing."""
        value = self.whole(*names)
        if not value:
            raise AnalyzerError(
                f"the config lacks {' or '.join(names)}", "pass the model's full config.json"
            )
        return value

    def text(self, name: str) -> str | None:
        """A string, if it is one."""
        value = self._config.get(name)
        return value if isinstance(value, str) else None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean, else the family's default."""
        value = self._config.get(name)
        return value if isinstance(value, bool) else default

    def listed(self, name: str) -> list[Any]:
        """A list, else an empty one."""
        value = self._config.get(name)
        return value if isinstance(value, list) else []

    @cached_property
    def pattern(self) -> str:
        """One letter a layer, where a hybrid says its layers so."""
        return self.text("hybrid_override_pattern") or ""

    @cached_property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.need("hidden_size")

    @cached_property
    def heads(self) -> int:
        """Query heads."""
        return self.need("num_attention_heads", "n_head")

    @cached_property
    def kv_heads(self) -> int:
        """Key and value heads; as many as query heads where the config is silent."""
        return self.whole("num_key_value_heads") or self.heads

    @cached_property
    def head_dim(self) -> int:
        """Never hidden / heads where the config says otherwise."""
        told = self.whole("head_dim", "attention_head_dim")
        return told or self.hidden // self.heads

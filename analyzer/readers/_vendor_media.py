"""How many of an answer's tokens are sound or pictures, which cost otherwise than text."""

from __future__ import annotations

from typing import Any

from analyzer.readers._rows import int_or_none

_MODALITIES = {"AUDIO": "audio", "IMAGE": "image"}
_LISTED = {
    "input": ("promptTokensDetails", "prompt_tokens_details"),
    "read": ("cacheTokensDetails", "cache_tokens_details"),
    "output": (
        "candidatesTokensDetails", "responseTokensDetails", "candidates_tokens_details",
        "response_tokens_details",
    ),
}  # fmt: skip
_COUNTED = {
    "input": ("prompt_tokens_details", "input_tokens_details", "input_token_details"),
    "output": ("completion_tokens_details", "output_tokens_details", "output_token_details"),
}


def media_tags(usage: dict[str, Any]) -> dict[str, str]:
    """Tags such as ``input_audio_tokens``; they are among the tokens, not beside them."""
    found: dict[str, int] = {}
    for side, names in _LISTED.items():
        for name in names:
            for one in _dicts(usage.get(name)):
                kind = _MODALITIES.get(str(one.get("modality")).upper())
                count = int_or_none(_first(one, "tokenCount", "token_count"))
                if kind and count and count > 0:
                    found[f"{side}_{kind}_tokens"] = count
    for side, names in _COUNTED.items():
        for name in names:
            details = usage.get(name)
            if isinstance(details, dict):
                found |= _counts(side, details)
                found |= _counts("read", details.get("cached_tokens_details"))
    return {name: str(count) for name, count in found.items()}


def _counts(side: str, details: Any) -> dict[str, int]:  # noqa: ANN401 - foreign JSON
    if not isinstance(details, dict):
        return {}
    told = {kind: int_or_none(details.get(f"{kind}_tokens")) for kind in ("audio", "image")}
    return {f"{side}_{kind}_tokens": n for kind, n in told.items() if n and n > 0}


def _dicts(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _first(holder: dict[str, Any], *names: str) -> Any:  # noqa: ANN401
    return next((holder[name] for name in names if holder.get(name) is not None), None)

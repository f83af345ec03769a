"""Names of models and providers as logs spell them, and what the price catalogs call them."""

from __future__ import annotations

import re
from functools import lru_cache

STANDARD = ""
RESERVED = "reserved"
"""Capacity that is paid by the hour, not by the token."""

_PROVIDERS = {
    "aws": r"bedrock|amazon|\baws\b",
    "azure": r"azure",
    "google": r"google|vertex|gemini|^gcp\b",
    "anthropic": r"anthropic|^claude$",
    "openrouter": r"openrouter",
    "openai": r"openai|^codex$|chatgpt",
    "x-ai": r"^x[-_. ]?ai$|^grok$",
    "mistral": r"^mistral",
    "deepseek": r"deepseek",
    "moonshotai": r"moonshot|^kimi",
}
"""Checked in this order: azure.ai.openai is Azure."""
_RELAYS = frozenset({
    "cursor", "litellm", "litellm_proxy", "github-copilot", "copilot", "portkey", "helicone",
})  # fmt: skip
"""They hand a request on; the model's name says to whom."""
_OWN = re.compile(
    r"vllm|sglang|ollama|llama[._-]?cpp|tgi|lm[-_ ]?studio|hosted|localhost|triton|tensorrt|openllm"
)
_PREFIX = {
    "openai": "openai", "azure": "azure", "azure_ai": "azure", "anthropic": "anthropic",
    "google": "google", "gemini": "google", "vertex_ai": "google", "vertex": "google",
    "bedrock": "aws", "bedrock_converse": "aws", "converse": "aws", "deepseek": "deepseek",
    "xai": "x-ai", "x-ai": "x-ai", "mistral": "mistral", "groq": "groq", "cohere": "cohere",
    "openrouter": "openrouter", "together_ai": "together", "fireworks_ai": "fireworks",
    "perplexity": "perplexity", "cerebras": "cerebras",
}  # fmt: skip
"""What stands before a slash, as LiteLLM and others write it. Owners on Hugging Face are not here:
weights that anyone may serve have no one price."""
_BY_NAME = (
    (re.compile(r"^(?:[a-z]{2,6}(?:-[a-z]+)?\.)?anthropic\.claude"), "aws"),
    (re.compile(r"^(?:us|eu|apac|global)?\.?amazon\.(?:nova|titan)"), "aws"),
    (re.compile(r"^claude-"), "anthropic"),
    (re.compile(r"^(?:gpt-(?!oss)|chatgpt-|o[134](?:-|$)|ft:|text-embedding-|codex-)"), "openai"),
    (re.compile(r"^gemini-"), "google"),
    (re.compile(r"^grok-"), "x-ai"),
    (re.compile(r"^composer-"), "cursor"),
    (re.compile(r"^deepseek-(?:chat|reasoner)$"), "deepseek"),
)
"""Names that only their vendor has; weights under open licences are not among them."""
_TIERS = {
    STANDARD: "standard|standard_only|default|auto|on[-_ ]?demand|normal|none|shared",
    "batch": "batch|batches|batch_api",
    "flex": "flex|on[-_ ]?demand[-_ ]flex",
    "priority": "priority|fast|on[-_ ]?demand[-_ ]priority",
    RESERVED: "reserved|scale|provisioned([-_ ]throughput)?|ptu",
}
_SWAPPED = re.compile(r"^claude-(\d(?:[.-]\d)?)-(opus|sonnet|haiku)\b")
_CLOUD_PATH = re.compile(r"^(?:arn:aws[^/]*/|(?:.*/)?models/)(?=[^/]+$)")


@lru_cache(4096)
def provider_of(provider: str) -> str | None:
    """Id of a provider in the catalogs; the word itself where none is known, None for a relay."""
    word = provider.strip().lower()
    if not word or word in _RELAYS:
        return None
    for name, pattern in _PROVIDERS.items():
        if re.search(pattern, word):
            return name
    return word


@lru_cache(4096)
def is_own(provider: str) -> bool:
    """A model server of one's own, which no price list covers."""
    return _OWN.search(provider.lower()) is not None


@lru_cache(4096)
def model_of(model: str, provider: str) -> tuple[str, str | None]:
    """Name and provider to look up; no provider: the name does not say whose it is."""
    name, vendor = model.strip().lower(), provider_of(provider)
    if name.startswith("arn:aws"):
        vendor = vendor or "aws"
    if not name.startswith("accounts/fireworks/"):
        name = _CLOUD_PATH.sub("", name)
    # OpenRouter's own names have the slash.
    while "/" in name and vendor != "openrouter":
        head, _, rest = name.partition("/")
        if head == "bedrock" and rest.count("/"):  # bedrock/us-east-1/...
            rest = rest.rpartition("/")[2]
        if head in _RELAYS:
            name = rest
            continue
        if head not in _PREFIX or vendor not in (None, _PREFIX[head]):
            break
        name, vendor = rest, _PREFIX[head]
    if vendor is None:
        name = _SWAPPED.sub(lambda m: f"claude-{m[2]}-{m[1].replace('.', '-')}", name)
        vendor = vendor_of(name)
    return name, vendor


def vendor_of(name: str) -> str | None:
    """Whose model it is, where only its vendor has it."""
    return next((who for pattern, who in _BY_NAME if pattern.search(name)), None)


@lru_cache(256)
def tier_of(word: str) -> str:
    """A tier in the catalogs' words; an unknown word stays."""
    told = word.strip().lower()
    if not told:
        return STANDARD
    return next((tier for tier, also in _TIERS.items() if re.fullmatch(also, told)), told)


@lru_cache(256)
def speed_of(word: str) -> str:
    """The same for a speed."""
    told = word.strip().lower()
    return STANDARD if told in ("", "standard", "normal", "default") else told


@lru_cache(256)
def geo_of(word: str) -> str:
    """Where inference was kept; empty where it was not."""
    told = word.strip().lower()
    return STANDARD if told in ("", "global", "not_available", "none", "default") else told

"""What a simulator has to know of a case to make a world like it: requests, limits, capacity."""

from __future__ import annotations

from typing import Any

from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError

MOST = 200_000
"""Requests that a fit looks at: the first ones of the scope."""
_FEWEST = 10

REQUESTS_SQL = f"""
SELECT
  r.request_key, coalesce(s.server_start_ns, r.start_ns) AS arrived_ns, r.start_ns,
  coalesce(r.model, '') AS model, coalesce(r.route, '') AS route, r.session_id,
  r.input_tokens, r.cache_read_tokens, r.output_tokens, r.output_reasoning_tokens,
  r.max_output_tokens, r.streamed, r.failed,
  s.queue_ns, s.prefill_ns, s.decode_ns, s.network_ns, s.frontend_ns, s.unattributed_ns,
  s.ttft_ns, s.e2e_ns, s.held_ns, t.tpot_ns, t.tokens_per_chunk
FROM resolve_request AS r
JOIN latency_segment AS s ON r.request_key = s.request_key
JOIN latency_token AS t ON r.request_key = t.request_key
WHERE r.start_ns IS NOT NULL
ORDER BY r.start_ns, r.request_key
LIMIT {MOST}
"""
SAMPLES_SQL = """
SELECT max(CASE WHEN waiting > 0 THEN running END) AS running_while_waiting,
  max(running) AS running, count(*) AS samples
FROM resolve_engine_sample
"""
DEPLOYMENT_SQL = "SELECT max(max_running) AS max_running, max(gpu) AS gpu FROM deployment"


def observed(engine: Engine) -> dict[str, Any]:
    """``requests`` as rows, and what engines say of their limits."""
    requests = engine.rows(REQUESTS_SQL)
    sized = [one for one in requests if one["input_tokens"] is not None and one["output_tokens"]]
    if len(sized) < _FEWEST:
        raise AnalyzerError(
            f"only {len(sized)} requests tell when they started and how many tokens they had",
            f"a world is fitted to at least {_FEWEST}; analyze status says what is missing",
        )
    total = engine.value("SELECT count(*) FROM resolve_request")
    return {
        "requests": requests,
        "total": total,
        "capacity_tokens": engine.value("SELECT capacity_tokens FROM resolve_capacity"),
        **engine.rows(SAMPLES_SQL)[0],
        **{f"told_{name}": one for name, one in engine.rows(DEPLOYMENT_SQL)[0].items()},
    }

"""Steps that no annotation tells: as many as there were, or none at all."""

from __future__ import annotations

import pytest
from cases._traces import ARGMAX, ATTENTION, COPY, GEMM, NORM, Trace, eager, replay
from helpers import case_of, engine_of

LAYER = [NORM, GEMM, "rotary_embedding_kernel", ATTENTION, GEMM, NORM, "nvjet_up", "act_and_mul"]
EXPERT = "fused_moe_kernel"
EMBED, HEAD = "embedding_lookup", "nvjet_head"
STEPS = 12


def _model(layers=16, layer=LAYER, ends=(HEAD,)):
    return [EMBED, *layer * layers, *ends]


def _experts(step, ends):
    """Routing decides how many kernels a layer has."""
    layers = [
        name
        for k in range(16)
        for name in (*LAYER[:6], *[EXPERT] * (1 + (7 * step + 5 * k + step * k) % 9))
    ]
    return [EMBED, *layers, *ends]


def _every_tenth():
    return [_model() if k % 10 else [*_model(), "log_stats"] for k in range(45)]


def _drafts():
    small = [EMBED, *LAYER, HEAD, ARGMAX]
    return [[*small * 4, *_model(24, ends=("verify", ARGMAX))] for _ in range(STEPS)]


def _with_prefills(ends):
    prompt = [EMBED, *[*LAYER[:3], "flash_fwd_kernel", "splitKreduce", *LAYER[3:]] * 16, *ends]
    return [prompt if k % 4 == 1 else _model(ends=ends) for k in range(16)]


def _hybrid():
    """Every fourth layer looks at everything."""
    group = [*LAYER * 3, *[*LAYER[:3], "flash_fwd_global", *LAYER[4:]]]
    return [_model(6, group) for _ in range(STEPS)]


CHOSEN = [*LAYER[:6], "void at::native::sbtopk::gatherTopK<float>", EXPERT, EXPERT]
SAMPLED = (HEAD, ARGMAX, COPY)
KNOWN = {
    "a sampler ends each step": [_model(ends=SAMPLED)] * STEPS,
    "prompts between decodes": _with_prefills(SAMPLED),
    "a sampler of several kernels": [_model(ends=(HEAD, "topk", "softmax", ARGMAX, COPY))] * STEPS,
    "experts": [_experts(k, SAMPLED) for k in range(STEPS)],
    "nothing but an embedding and a head": [_model()] * STEPS,
    "experts without a sampler": [_experts(k, (HEAD,)) for k in range(STEPS)],
    "groups of layers": _hybrid(),
    "experts chosen as tokens are": [_model(layer=CHOSEN, ends=SAMPLED)] * STEPS,
}
UNKNOWN = {
    "layers alone": [LAYER * 40],
    "layers with a kernel of their own size": [[*LAYER, "gather_bias", *LAYER[:5]] * 40],
    "layers of chosen experts alone": [CHOSEN * 40],
    "something every tenth step": _every_tenth(),
    "nothing repeats": [[f"k{k}" for k in range(400)]],
}


def _told(tmp_path, trace):
    logs = tmp_path / "logs"
    logs.mkdir()
    trace.write(logs)
    with engine_of(case_of(logs, tmp_path / "case.duckdb")) as engine:
        return engine.rows("SELECT work, told_by, is_whole FROM gpu_step ORDER BY step")


def _eager(steps):
    trace, at = Trace(), 1_000.0
    for names in steps:
        at = eager(trace, at, [(name, 9.0) for name in names], every=10) + 50
    return trace


def _replays(graphs):
    """Graphs, each a list of names; an eager part is a tuple."""
    trace, at = Trace(), 1_000.0
    for names in graphs:
        run = replay if isinstance(names, list) else lambda *told: eager(*told, every=10)
        at = run(trace, at, [(name, 9.0) for name in names]) + 50
    return trace


@pytest.mark.parametrize("name", KNOWN)
def test_steps_are_as_many_as_there_were(name, tmp_path):
    told = _told(tmp_path, _eager(KNOWN[name]))
    assert [row["work"] for row in told] == [len(names) for names in KNOWN[name]]
    assert sum(row["is_whole"] for row in told) == len(told) - 2


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_may_be_layers_is_called_no_step(name, tmp_path):
    assert not _told(tmp_path, _eager(UNKNOWN[name]))


def test_a_draft_that_is_sampled_too_makes_no_steps_of_its_own(tmp_path):
    """What comes once a step is near its end here: the first steps begin there, too."""
    told = _told(tmp_path, _eager(_drafts()))
    assert len(told) == STEPS
    assert {row["work"] for row in told if row["is_whole"]} == {len(_drafts()[0])}


def _graph(layers, *more):
    return [EMBED, *LAYER * layers, HEAD, *more]


def test_two_batches_in_turn_are_steps(tmp_path):
    graphs = [_graph(20), _graph(20, "splitKreduce", "splitKreduce")] * 6
    told = _told(tmp_path, _replays(graphs))
    assert [(row["work"], row["told_by"]) for row in told] == [
        (len(names), "inferred: graph") for names in graphs
    ]


def test_a_graph_and_its_sampler_are_one_step(tmp_path):
    told = _told(tmp_path, _replays([_graph(20), (ARGMAX, COPY)] * STEPS))
    assert [row["work"] for row in told] == [len(_graph(20)) + 2] * STEPS


def test_a_draft_and_its_target_are_one_step(tmp_path):
    """Graphs of two models, and the next step begins with the first of them."""
    target = ["copy_inputs", *_graph(40, "verify")]
    told = _told(tmp_path, _replays([target, _graph(6)] * STEPS))
    assert {row["told_by"] for row in told} == {"inferred: period"}
    assert [row["work"] for row in told] == [len(target) + len(_graph(6))] * STEPS


def test_an_eager_prompt_between_replays_is_a_step(tmp_path):
    prompt = tuple(_model())
    parts = [part for k in range(STEPS) for part in ([prompt] if k % 4 == 1 else []) + [_graph(20)]]
    told = _told(tmp_path, _replays(parts))
    assert [row["work"] for row in told] == [len(part) for part in parts]

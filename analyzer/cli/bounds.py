"""``analyze bounds``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from analyzer.cli import _bounds, _complete, _console
from analyzer.cli._options import Moment, db_option, example, format_option, show
from analyzer.cli._sizes import PARAMS, RATE, SIZE
from analyzer.contract.types import Filters

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]

_ONE, _ANY = click.IntRange(min=1), click.IntRange(min=0)


def _options(command: Command) -> Command:
    """Add everything that can be said of a deployment, in the order people think of it."""
    added = (
        click.option("--model", metavar="NAME|FILE", shell_complete=_complete.models,
                     help="Model, its Hugging Face id, or its config.json or folder."),
        click.option("--weights", metavar="FORMAT", shell_complete=_complete.weights,
                     help="bf16, fp8, int8, awq, int4, nvfp4, q4_k_m, 4.5bpw, ..."),
        click.option("--weight-bytes", metavar="SIZE", type=SIZE,
                     help="Size of the checkpoint or GGUF file, instead of a format."),
        click.option("--kv", metavar="FORMAT", help="KV cache: bf16, fp8, ..."),
        click.option("--gpu", metavar="NAME", shell_complete=_complete.gpus,
                     help="Part, or the name its driver prints."),
        click.option("--memory-bandwidth", metavar="RATE", type=RATE,
                     help="Of one GPU, as 3350GB/s; beats the catalog."),
        click.option("--memory", metavar="SIZE", type=SIZE, help="Of one GPU; beats the catalog."),
        click.option("--count", metavar="N", type=_ONE, help="GPUs altogether."),
        click.option("--tp", metavar="N", type=_ONE, help="Tensor parallel: GPUs share a layer."),
        click.option("--pp", metavar="N", type=_ONE, help="Pipeline parallel: stages in turn."),
        click.option("--dp", metavar="N", type=_ONE, help="Attention data parallel groups."),
        click.option("--batch", metavar="N", type=_ONE, help="Sequences that decode together."),
        click.option("--context", metavar="TOKENS", type=_ANY,
                     help="Context of each of them (default: the prompt)."),
        click.option("--prompt", metavar="TOKENS", type=_ONE, help="Prompt, for TTFT."),
        click.option("--cached", metavar="TOKENS", type=_ANY,
                     help="Of the prompt, already in the prefix cache."),
        click.option("--drafts", metavar="N", type=_ANY,
                     help="Speculation: drafted tokens a step."),
        click.option("--acceptance", metavar="RATIO", type=click.FloatRange(0, 1),
                     help="Speculation: share of the drafts that are accepted."),
        click.option("--tokens-per-step", metavar="X", type=click.FloatRange(min=1),
                     help="Speculation: tokens a step commits, measured."),
        click.option("--cpu-weight-bytes", metavar="SIZE", type=SIZE,
                     help="Weights that lie in the host's memory."),
        click.option("--cpu-memory-bandwidth", metavar="RATE", type=RATE,
                     help="Bandwidth of the host's memory."),
        click.option("--params", metavar="N", type=PARAMS,
                     help="Without --model: parameters read a step."),
        click.option("--layers", metavar="N", type=_ONE, help="With --params: layers."),
        click.option("--kv-heads", metavar="N", type=_ONE, help="With --params: key heads."),
        click.option("--head-dim", metavar="N", type=_ONE, help="With --params: head size."),
        click.option("--hidden", metavar="N", type=_ONE, help="With --params: hidden size."),
        click.option("--simple", is_flag=True, help="The textbook's formulas, to the digit."),
        click.option("--since", type=Moment(), help="On a case: from this time or date on."),
        click.option("--until", type=Moment(), help="On a case: before this time or date."),
        click.option("--route", metavar="NAME", help="On a case: only this route."),
        click.option("--session", metavar="ID", help="On a case: only this session."),
    )  # fmt: skip
    for option in reversed(added):
        command = option(command)
    return command


@click.command(
    "bounds",
    epilog=example(
        "analyze bounds --model llama-3.1-8b --gpu h100-sxm5-80gb --batch 8 --prompt 4096",
        "analyze bounds --model openai/gpt-oss-120b --gpu 'NVIDIA H200' --tp 2 --batch 32 \\",
        "    --context 8192 --kv fp8",
        "analyze bounds                                # the case, by what its files tell",
        "analyze --db case.duckdb bounds --gpu 'NVIDIA H200' --tp 2",
    ),
)
@_options
@format_option
@db_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    form: str,
    simple: bool,
    db: str,
    **told: Any,  # noqa: ANN401 - one value an option
) -> None:
    """Tell how fast a model can be on a GPU, and how near a case comes to that.

    Three lines for TPOT and TTFT: what cannot be beaten, what this batch and layout give, and what
    well tuned engines reach. With a model, the calculator: what fits, what each change would give.
    On a case (--db, or one in this folder and no model named): what was observed against the three
    lines; options beat what its files tell of the deployment.
    """
    from analyzer import api

    filters = Filters(
        since_ns=told.pop("since"),
        until_ns=told.pop("until"),
        route=told.pop("route"),
        session=told.pop("session"),
    )
    told["memory_bandwidth_bytes_s"] = told.pop("memory_bandwidth")
    told["memory_bytes"] = told.pop("memory")
    told["cpu_bandwidth_bytes_s"] = told.pop("cpu_memory_bandwidth")
    if _on_case(ctx, db, told, filters):
        _refuse_what_the_case_tells(told, simple=simple)
        show(api.bounds_observed(db, filters, **told), form)
        return
    table = api.bounds(simple=simple, **told)
    if form in {"table", "md"}:
        _console.out(_bounds.render(table, form))
    else:
        show(_bounds.flat(table) if form == "csv" else table, form)


_OF_THE_CASE = ("batch", "context", "prompt", "cached")
"""What the calculator is told and a case knows."""


def _on_case(ctx: click.Context, db: str, told: dict[str, Any], filters: Filters) -> bool:
    """Whether a case is asked about: one that is named, or the folder's where no model is."""
    before = ctx.find_root().params.get("db") or ctx.find_root().obj
    named = before or ctx.get_parameter_source("db") is ParameterSource.COMMANDLINE
    if named or filters != Filters():
        return True
    asked = ("model", "params", *_OF_THE_CASE)
    return all(told[name] is None for name in asked) and Path(db).exists()


def _refuse_what_the_case_tells(told: dict[str, Any], *, simple: bool) -> None:
    given = [name for name in _OF_THE_CASE if told[name] is not None] + ["simple"] * simple
    if given:
        raise click.UsageError(
            f"a case tells batch, context and prompts itself: leave out --{', --'.join(given)}"
        )

"""``analyze bounds``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from analyzer.cli import _bounds, _complete, _console
from analyzer.cli._options import example, format_option, show
from analyzer.cli._sizes import PARAMS, RATE, SIZE

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
    ),
)
@_options
@format_option
def command(*, form: str, simple: bool, **told: Any) -> None:  # noqa: ANN401 - one value an option
    """Tell how fast a model can be on a GPU, from its shape and the GPU's figures alone.

    Three lines for TPOT and TTFT: what cannot be beaten, what this batch and layout give, and what
    well tuned engines reach. Then what fits, and what each change would give.
    """
    from analyzer import api

    told["memory_bandwidth_bytes_s"] = told.pop("memory_bandwidth")
    told["memory_bytes"] = told.pop("memory")
    told["cpu_bandwidth_bytes_s"] = told.pop("cpu_memory_bandwidth")
    table = api.bounds(simple=simple, **told)
    if form in {"table", "md"}:
        _console.out(_bounds.render(table, form))
    else:
        show(_bounds.flat(table) if form == "csv" else table, form)

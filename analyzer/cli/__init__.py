"""The command line: one module a command, found by listing this folder, each over one api call.

Nothing heavy is imported before a command runs, so that ``--help`` and completion are instant.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

import click

from analyzer import __version__
from analyzer.cli import _console
from analyzer.errors import AnalyzerError, near

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DONE, GATE, COULD_NOT, BUG, INTERRUPTED = 0, 1, 2, 3, 130
DEFAULT_DB = "analyze.duckdb"

_FIRST_SCREEN = """\
Where did the time and the money go, how do we know, and when is it fixed?
Reads logs and traces of LLM serving. Nothing leaves this machine.

  analyze ingest logs/          read logs and traces into ./analyze.duckdb
  analyze latency               queue, prefill, decode and network time
  analyze findings              found, clear and cannot say, counted apart
  analyze explain RULE          one finding: evidence, action, done when
  analyze report                write reports/incident.html
  analyze verify                is it fixed? asked of a later window or capture
  analyze compare               before and after: what changed beyond noise
  analyze turns                 conversations: growth, prompt cache, cost

Look inside:  status  timeline  show  sql  schema  formats
Help:         analyze COMMAND --help     Tab completion: analyze completion
"""


_EPILOG = """\
\b
Example:
  analyze ingest logs/
  analyze findings

Exit codes: 0 done, 1 a gate failed, 2 could not do it, 3 a bug.
"""


class Commands(click.Group):
    """A group whose commands are the modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every module that is not private."""
        del ctx
        return sorted(
            module.name.replace("_", "-")
            for module in pkgutil.iter_modules(__path__)
            if not module.name.startswith("_")
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command's module."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"analyzer.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the command that was meant where there is none of that name."""
        name = args[0]
        if self.get_command(ctx, name) is None and name.isidentifier():
            meant = near(name, self.list_commands(ctx))
            if meant:
                ctx.fail(f"No such command {name!r}: did you mean {' or '.join(meant)}?")
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        windows_expand_args: bool = False,  # noqa: FBT001, FBT002 - click's signature
        **extra: Any,  # noqa: ANN401 - click's signature
    ) -> Any:  # noqa: ANN401 - click's signature
        """Run, and turn every way to end into its exit code."""

        def run() -> Any:  # noqa: ANN401 - whatever the command returns
            return super(Commands, self).main(
                args=args,
                prog_name=prog_name or "analyze",
                complete_var=complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )

        return _guarded(run) if standalone_mode else run()


def _guarded(run: Callable[[], Any]) -> NoReturn:
    """Exit with 0, 1, 2, 3 or 130; no traceback reaches the terminal."""
    try:
        code = run()
    except click.ClickException as error:
        error.show(file=sys.stderr)
        sys.exit(COULD_NOT)
    except AnalyzerError as error:
        _console.error(error.message, error.hint)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _console.note("interrupted")
        sys.exit(INTERRUPTED)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _console.error(f"{place}{error.strerror or error}")
        sys.exit(COULD_NOT)
    except Exception:  # the last net: what gets here is a bug of ours
        _report_bug()
        sys.exit(BUG)
    # click gives the code of `ctx.exit()` back when it does not exit by itself.
    sys.exit(code if isinstance(code, int) else DONE)


def _report_bug() -> None:
    handle, path = tempfile.mkstemp(prefix="analyze-bug-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"analyze {__version__}, Python {sys.version}\n\n{traceback.format_exc()}")
    kind, value, _ = sys.exc_info()
    name = kind.__name__ if kind else "error"
    _console.error(
        f"this is a bug in analyze ({name}: {str(value)[:200]})",
        f"please report it with {path}; look first whether it holds anything private",
    )


@click.group(
    "analyze",
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EPILOG,
)
@click.option(
    "--db", metavar="FILE", help=f"The case's database (default {DEFAULT_DB}), also after COMMAND."
)
@click.version_option(__version__, prog_name="analyze")
@click.pass_context
def cli(ctx: click.Context, db: str | None) -> None:
    """Tell where the time and the money of LLM serving went, and how that is known."""
    ctx.obj = db
    if ctx.invoked_subcommand is None:
        _console.out(_FIRST_SCREEN)


def main() -> NoReturn:
    """Run the command line and exit."""
    cli.main()
    sys.exit(DONE)

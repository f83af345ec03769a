"""Errors people can act on: what happened, where, and what to do next."""

from __future__ import annotations


class AnalyzerError(Exception):
    """An expected failure. Printed as message and hint, never as a traceback.

    Exit codes: 1 a gate that was asked for failed, 2 could not do it.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class GateFailed(AnalyzerError):
    """A condition the caller asked to be held to (``--strict``, ``--fail-on``) did not hold."""

    exit_code = 1

"""Native emit events: when an engine handed over each token, on the engine's clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

from analyzer.simulate.outcome import Base, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.write_stream import seconds

NEEDS_CHUNKS = True


class Emits(Base):
    """One line a token."""

    def __init__(self, file: TextIO, view: LogView, replica: str | None) -> None:
        self.file, self.view, self.replica = file, view, replica

    def request(self, outcome: RequestOutcome) -> None:
        """All tokens of one attempt."""
        one, view = outcome, self.view
        if self.replica not in (None, one.replica) or view.drops(one.request_id):
            return
        end = f',"request_id":{json.dumps(one.request_id)},"event":"emit","index":'
        lines = [
            f'{{"ts":{seconds(view.time(at))}{end}{index}}}\n'
            for index, at in enumerate(one.token_ns)
        ]
        self.file.write("".join(lines))

    def close(self) -> None:
        """No more comes."""
        self.file.close()


def recorder(folder: Path, log: Log, world: World) -> Emits:
    """Of one replica, or of all."""
    path = folder / (log.file or "emits.jsonl")
    file = path.open("w", encoding="utf-8", newline="\n")
    return Emits(file, view_of(log, world), log.replica)

"""Where reading goes on in a file that has grown: JSON, packed where it is long."""

from __future__ import annotations

import base64
import json
import zlib

from analyzer.contract.types import Resume

_PACKED_FROM = 1_000_000


def dump_resume(resume: Resume) -> str:
    """JSON. Hundreds of thousands of open requests are packed: DuckDB would copy them thrice."""
    # vars, not asdict: the state of many open requests is not copied once more.
    text = json.dumps(vars(resume))
    if len(text) < _PACKED_FROM:
        return text
    return json.dumps({"zlib": base64.b64encode(zlib.compress(text.encode(), 1)).decode()})


def load_resume(text: str | None) -> Resume | None:
    """What :func:`dump_resume` wrote."""
    if not text:
        return None
    value = json.loads(text)
    if "zlib" in value:
        value = json.loads(zlib.decompress(base64.b64decode(value["zlib"])))
    return Resume(value["offset"], value["records"], tuple(value["provisional"]), value["state"])

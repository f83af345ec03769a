"""A headless Chromium over the DevTools protocol: exact page widths, dark mode, console errors.

``--window-size`` has a minimum of about 500 px, so a phone's width needs the protocol; the pipe
needs no port and no further package.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)

_PLACE = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """One page of one browser. Use as a context manager."""

    def __init__(self) -> None:
        binary = chromium()
        assert binary
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()
        # Out of the way of 3 and 4, where the browser listens.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_child, from_child)]
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _PLACE, *map(str, ends)),
                *(binary, *FLAGS, f"--user-data-dir={self._profile.name}"),
            ],
            pass_fds=ends,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (to_child, from_child, *ends):
            os.close(end)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []

    def __enter__(self) -> Browser:
        try:
            self._attach()
        except BaseException:
            self.close()
            raise
        return self

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._from, 1 << 20)
            assert part, "the browser went away"
            self._buffer += part
        raw, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(raw))

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Log.entryAdded":
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        self._loaded = method == "Page.loadEventFired"

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        """Load a file at a width of ``width`` CSS pixels and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self._loaded:
            self._note(self._next())

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives on the page."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def later(self, expression: str) -> Any:
        """What a promise gives on the page."""
        got = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def media(self, name: str) -> None:
        """Show the page as on ``print`` or on the screen."""
        self.call("Emulation.setEmulatedMedia", media=name)

    def pdf(self) -> bytes:
        """The page as it prints on A4."""
        got = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(got["data"])

    def screenshot(self, path: Path) -> None:
        """Save the whole page."""
        got = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(got["data"]))

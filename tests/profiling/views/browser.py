"""A headless Chromium, driven through its own debugging pipe: no driver, no library."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import Any

PROGRAMS = (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome",
)  # fmt: skip
START = """
import os, sys
reading, writing = (os.dup(int(fd)) for fd in sys.argv[1:3])
os.dup2(os.dup(reading), 3), os.dup2(os.dup(writing), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from 3 and answers on 4, whatever those are here."""


def find():
    """Return a browser's path, None where there is none; LOUVAIN_UM_BROWSER names another."""
    named = os.environ.get("LOUVAIN_UM_BROWSER")
    return named or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page; `errors` holds what its console complained of."""

    def __init__(self, program, folder, *, width=1280, height=900):
        theirs, self.out = os.pipe()
        self.back, answers = os.pipe()
        self.errors: list[str] = []
        self.events: list[dict[str, Any]] = []
        self._number, self._rest, self._session = 0, b"", ""
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", START, str(theirs), str(answers), program,
             "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", f"--user-data-dir={folder}",
             f"--window-size={width},{height}"],
            pass_fds=(theirs, answers), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(answers)
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def open(self, path):
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.until(lambda: any(e["method"] == "Page.loadEventFired" for e in self.events))

    def run(self, script):
        """Return what an expression, or the promise it is, comes to."""
        result = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script, seconds=20):
        """Wait until an expression is true, and return it."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)
        return value

    def click(self, selector):
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def middle(self, selector):
        """Bring an element into view, and return its middle."""
        found = self.run(
            f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center"}}); const r = e.getBoundingClientRect();
            return [r.x + r.width / 2, r.y + r.height / 2]; }})()"""
        )
        return found[0], found[1]

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        answers = []
        number = self._number
        self.until(lambda: any(a["id"] == number for a in answers), answers)
        answer = next(a for a in answers if a["id"] == number)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def until(self, done, answers=None):
        """Take in what the browser says until something holds, half a minute at most."""
        end = time.monotonic() + 30
        while not done():
            left = end - time.monotonic()
            ready = left > 0 and select.select([self.back], [], [], left)[0]
            assert ready, "the browser is silent"
            chunk = os.read(self.back, 1 << 16)
            assert chunk, "the browser is gone"
            *whole, self._rest = (self._rest + chunk).split(b"\0")
            for text in whole:
                message = json.loads(text)
                if "id" in message:
                    if answers is not None:
                        answers.append(message)
                else:
                    self.events.append(message)
                    self._complaint(message)

    def _complaint(self, message):
        method, params = message["method"], message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "about:")):
                self.errors.append(f"asked the network for {url}")

    def close(self):
        os.write(self.out, b'{"id": 0, "method": "Browser.close"}\0')
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.back)

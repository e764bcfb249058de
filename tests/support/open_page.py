#!/usr/bin/env python3
"""Opens a page in headless Chromium, 1280 and 380 pixels wide, as its reader would; prints what is there as JSON.

  open_page.py PAGE.html OUT_DIR

OUT_DIR gets PAGE-WIDTH.png. Speaks the DevTools protocol over a pipe: no port, nothing of the network. Exit code 3
where there is no Chromium.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

DEADLINE_S = 60
LOOK = """(() => ({
  scrollWidth: document.documentElement.scrollWidth, innerWidth: innerWidth,
  letters: document.body.innerText.length,
  ...(() => {
    const cut = new Set(), touching = new Set();
    const measure = () => document.querySelectorAll('svg.curves').forEach(svg => {
      for (const text of svg.querySelectorAll('text')) {
        const box = text.getBBox();
        if (box.x < 0 || box.x + box.width > svg.viewBox.baseVal.width) cut.add(text.textContent);
      }
      const ticks = [...svg.querySelectorAll('.y-ticks text')].map(t => ({text: t.textContent, box: t.getBBox()}))
          .sort((a, b) => a.box.y - b.box.y);
      ticks.slice(1).forEach((t, i) => t.box.y < ticks[i].box.y + ticks[i].box.height && t.box.height > 0 &&
          touching.add(ticks[i].text + ' and ' + t.text));
    });
    const scales = document.querySelectorAll('button.scale:not([hidden])');
    measure();
    scales.forEach(b => b.click());
    measure();
    scales.forEach(b => b.click());
    return {cut: [...cut], touching: [...touching]};
  })(),
  curves: document.querySelectorAll('svg.curves').length,
  drawn: [...document.querySelectorAll('svg.curves .series .line')].filter(p => p.getTotalLength() > 0).length,
  pictures: [...document.images].filter(i => i.naturalWidth > 0).length, images: document.images.length,
  videos: document.querySelectorAll('video').length,
  links: [...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href')),
  broken: [...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href'))
      .filter(h => !document.getElementById(h.slice(1))),
  height: document.documentElement.scrollHeight}))()"""
# What a click on each button of the first chart changes.
TOUCH = """(() => {
  const f = document.querySelector('figure.curves');
  if (!f) return null;
  const ticks = () => f.querySelector('.y-ticks').textContent, line = () => f.querySelector('.line').getAttribute('d');
  const out = {}, scale = f.querySelector('button.scale'), key = f.querySelector('button.key');
  const places = () => [...f.querySelectorAll('.y-ticks text')].map(t => t.textContent + t.getAttribute('y')).join();
  const before = [ticks(), line(), places()];
  scale.click();
  out.logTicks = places() !== before[2];
  out.logLine = line() !== before[1];
  scale.click();
  const numbers = d => d.match(/[0-9.]+/g).map(Number), now = numbers(line());
  out.sameTicks = ticks() === before[0];
  out.back = numbers(before[1]).every((v, i) => Math.abs(v - now[i]) < 0.3);  // the page has its values rounded
  key.click();
  out.hidden = getComputedStyle(f.querySelector('.series')).display === 'none';
  key.click();
  out.shown = getComputedStyle(f.querySelector('.series')).display !== 'none';
  return out;
})()"""
BOX = """(() => {
  const svg = document.querySelector('svg.curves');
  if (!svg) return null;
  svg.scrollIntoView({block: 'center'});
  const b = svg.getBoundingClientRect();
  return {x: b.x + 0.6 * b.width, y: b.y + 0.5 * b.height};
})()"""
HOVERED = """(() => ({cursor: document.querySelector('svg.curves .cursor').getAttribute('visibility'),
  at: document.querySelector('svg.curves .cursor + text').textContent,
  values: [...document.querySelector('figure.curves').querySelectorAll('output')].map(o => o.textContent)}))()"""


class Browser:
    def __init__(self, program, folder):
        to_read, self.write_fd = os.pipe()
        self.read_fd, to_write = os.pipe()

        def arrange():  # the protocol's pipes are descriptors 3 and 4
            high = [os.dup(to_read), os.dup(to_write)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        self.process = subprocess.Popen([program, *flags, "about:blank"], preexec_fn=arrange, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.until = time.monotonic() + DEADLINE_S
        self.number, self.rest, self.events, self.session = 0, b"", [], None

    def message(self):
        while b"\0" not in self.rest:
            left = self.until - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise TimeoutError(f"Chromium said nothing for {DEADLINE_S} s")
            chunk = os.read(self.read_fd, 1 << 16)
            if not chunk:
                raise EOFError(f"Chromium ended with {self.process.poll()}")
            self.rest += chunk
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.message())

    def evaluate(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"])[:600])
        return result["result"].get("value")

    def open(self, url, width):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.events = [e for e in self.events if e.get("method") != "Page.loadEventFired"]
        self.ask("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def close(self):
        self.session = None
        try:
            self.ask("Browser.close")
            self.process.wait(timeout=20)
        except (OSError, RuntimeError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def ink(png):
    """Share of a PNG's filtered bytes that are not zero: near 0 for a sheet of one colour."""
    at, data = 8, b""
    while at < len(png):
        size, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += 12 + size
    raw = zlib.decompress(data)
    return 1 - raw.count(0) / len(raw)


def look(browser, page, out, width):
    browser.open(page.as_uri(), width)
    seen = browser.evaluate(LOOK)
    height = min(seen["height"], 2400)
    shot = browser.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                       clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
    png = base64.b64decode(shot["data"])
    (out / f"{page.stem}-{width}.png").write_bytes(png)
    seen["ink"] = ink(png)
    return seen


def visit(browser, page, out):
    targets = browser.ask("Target.getTargets")["targetInfos"]
    target = next(t["targetId"] for t in targets if t["type"] == "page")
    browser.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Network", "Runtime", "Log"):
        browser.ask(f"{domain}.enable")
    seen = {str(width): look(browser, page, out, width) for width in (1280, 380)}
    browser.open(page.as_uri(), 1280)
    seen["touched"] = browser.evaluate(TOUCH)
    place = browser.evaluate(BOX)
    if place:
        browser.ask("Input.dispatchMouseEvent", type="mouseMoved", **place)
        seen["hovered"] = browser.evaluate(HOVERED)
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page.as_uri(), 1280)
    seen["without_script"] = browser.evaluate(LOOK)
    urls = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    seen["requests"] = sorted({u[:200] for u in urls if not u.startswith("data:") and u != page.as_uri()})
    seen["errors"] = [json.dumps(e["params"])[:400] for e in browser.events
                      if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]
    return seen


def main():
    program = shutil.which("chromium")
    if program is None:
        print("chromium is not installed: scripts/setup --ci installs it", file=sys.stderr)
        return 3
    page, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    if not page.is_file():
        print(f"{page}: there is no such page", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, folder)
        try:
            seen = visit(browser, page, out)
        finally:
            browser.close()
    print(json.dumps(seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())

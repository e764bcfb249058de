"""Runs the command blocks of a page, in order, in a folder that begins empty but for a link bin/troupe."""
import os
import re
import shutil
import signal
import subprocess
import time

PLACEHOLDER = "/data/my-robot"
# Ends when the job does, so beside a job that goes on: looked at for this long, then asked to stop.
LOOK_S = 5
# What the last line of success says, where the exit code alone would say little.
SAYS = {"run": r"RUN COMPLETE", "verify": r"^\s*OK\b", "plan": r"\S", "stats": r"\S", "eval": r"\S", "serve": r"\S",
        "doctor": r"\S", "bench": r"samples/s", "node": r"joined as node/"}


class Failed(Exception):
    pass


class PageRun:
    """`shorten` is TROUPE_SET, "" for full length; `dataset` stands for /data/my-robot, None: those lines are skipped."""

    def __init__(self, page, pages, folder, program, dataset, shorten, deadline_s):
        self.page, self.folder, self.deadline_s = page, folder, deadline_s
        self.skipped = []
        self.output = ""
        self.dataset = None
        os.makedirs(os.path.join(folder, "bin"))
        os.symlink(program, os.path.join(folder, "bin", "troupe"))
        self.environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": f"{folder}/.cache"}
        self.environment.pop("TROUPE_SET", None)
        if shorten:
            self.environment["TROUPE_SET"] = shorten
        if dataset:
            self.dataset = folder + ".data"
            shutil.copytree(dataset, self.dataset)
            subprocess.run(["chmod", "-R", "u+w", self.dataset], check=True)
        self._write_files(pages)

    def run(self):
        for block in self.page.blocks:
            if "not run" in block.markers:
                continue
            if "prints" in block.markers:
                self._compare(block)
            elif block.is_shell():
                self._run_block(block)

    def _write_files(self, pages):
        files = self.page.files()
        for block in self.page.blocks:
            name, _, source = block.markers.get("file", "").partition(" from ")
            if source:
                files[name] = pages[source].files()[name]
        for name, text in files.items():
            with open(os.path.join(self.folder, name), "w") as out:
                out.write(self._filled(text))

    def _filled(self, text):
        return text.replace(PLACEHOLDER, self.dataset or PLACEHOLDER)

    def _run_block(self, block):
        usage = {s.text for s in self.page.shown if s.is_usage()}
        commands = [c for c in block.commands() if c not in usage]
        self.output = ""
        beside = self._start(block.markers["beside"]) if "beside" in block.markers else None
        try:
            for command in commands:
                expected = int(block.markers.get("exits with", 0)) if command == commands[-1] else 0
                self._run_command(block, command, expected, beside)
        finally:
            if beside:
                self._end(beside, signal.SIGINT)

    def _run_command(self, block, command, expected, beside):
        where = f"{self.page.name}:{block.line}: {command}"
        if PLACEHOLDER in command + "".join(self.page.files().get(w, "") for w in command.split()) and not self.dataset:
            self.skipped.append(where)
            return
        verb = re.sub(r"^.*?\btroupe ", "", command).split()[0]
        if verb == "serve":
            command = re.sub(r"\s+#.*$", "", command) + " --once-selftest"
        if verb == "verify" and beside:
            self._wait_for_end(beside, where)
        began = time.monotonic()
        looks = beside is not None and (verb == "node" or "--watch" in command)
        text, code = self._call(self._filled(command), LOOK_S if looks else self.deadline_s, looks, where)
        print(f"  {time.monotonic() - began:6.1f} s  exit {code}  {where}", flush=True)
        self.output += text
        if code != expected and not looks:
            raise Failed(f"{where}: exit code {code}, expected {expected}\n{text[-3000:]}")
        if expected == 0 and not re.search(SAYS.get(verb, r""), text, re.M) or looks and not text.strip():
            raise Failed(f"{where}: printed nothing like {SAYS.get(verb, 'a word')!r}\n{text[-3000:]}")
        for written in re.findall(r"(?:--out|--html|--token-file|>) (\S+)", command) if expected == 0 else []:
            path = os.path.join(self.folder, self._filled(written))
            if not os.path.exists(path) or os.path.getsize(path) == 0:
                raise Failed(f"{where}: wrote no {written}\n{text[-3000:]}")

    def _call(self, command, deadline_s, looks, where):
        child = self._popen(command, subprocess.PIPE)
        try:
            return child.communicate(timeout=deadline_s)[0], child.returncode
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGINT if looks else signal.SIGKILL)
            text = child.communicate(timeout=30)[0]
            if looks:
                return text, child.returncode
            raise Failed(f"{where}: not done after {deadline_s} s\n{text[-3000:]}") from None
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise

    def _popen(self, command, stdout):
        return subprocess.Popen(["bash", "-ec", command], cwd=self.folder, env=self.environment, text=True, stdout=stdout,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)

    def _start(self, command):
        """Starts a job and waits until it answers."""
        log = open(os.path.join(self.folder, "beside.log"), "w+")
        child = self._popen(self._filled(command), log)
        child.log = log
        until = time.monotonic() + self.deadline_s
        while time.monotonic() < until and child.poll() is None:
            text, code = self._call("bin/troupe status", 30, False, command)
            if code == 0 and re.search(r"RUNNING|step [1-9]", text):
                return child
            time.sleep(0.1)
        self._end(child, signal.SIGKILL)
        log.seek(0)
        raise Failed(f"{self.page.name}: beside: {command}: does not run\n{log.read()[-3000:]}")

    def _wait_for_end(self, child, where):
        try:
            child.wait(timeout=self.deadline_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"{where}: the job beside it goes on") from None

    def _end(self, child, first):
        for number in (first, signal.SIGKILL):
            if child.poll() is None:
                os.killpg(child.pid, number)
                try:
                    child.wait(timeout=60)
                except subprocess.TimeoutExpired:
                    continue
        child.log.close()

    def _compare(self, block):
        for line in block.lines:
            if line.strip() and line.strip() not in self.output:
                raise Failed(f"{self.page.name}:{block.line}: not printed: {line.strip()}\n{self.output[-3000:]}")

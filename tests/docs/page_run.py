"""Runs the command blocks of a page, in order, in a folder that begins empty but for a link `bin` to that of the build; a
page whose own first command makes that link begins with nothing."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from page_commands import shown_in, split_words

PLACEHOLDER = "/data/my-robot"
CLIENTS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".deps", "clients"))
# Ends when the job does, so beside a job that goes on: looked at for this long, then asked to stop.
LOOK_S = 5
LINK = "ln -s ../troupe/bin bin"
# What a verb says when it has done its work; config and completion print what they are asked for, and so does --json.
SAYS = {"run": r"RUN COMPLETE", "verify": r"^\s*OK\b", "plan": r"\bOK\b", "stats": r"^\s*episodes\b",
        "eval": r"^written: .*eval\.json", "serve": r"self-test ok", "doctor": r"\b0 errors|parameters",
        "bench": r"samples/s", "node": r"joined as node/", "scale": r"^\s*[+-] \w+/\d", "sweep": r"^written: .*/sweep\.md",
        "compare": r"^written: .*\.html", "init": r"^wrote .*job\.yaml", "record": r"^success +\d+ of \d+",
        "export": r"^exported [1-9]\d* tensors", "convert": r"^verify \w+: ", "encode": r"^cache +[1-9]",
        "status": r"step \d|stop", "runs": r"^run\b", "config": r"^version:|\$schema"}


class Failed(Exception):
    pass


class PageRun:
    """`shorten` is TROUPE_SET, "" for full length; `dataset` stands for /data/my-robot, None: those lines are skipped."""

    def __init__(self, page, pages, folder, program, dataset, shorten, deadline_s):
        self.page, self.folder, self.deadline_s = page, folder, deadline_s
        self.skipped = []
        self.output = ""
        self.dataset = None
        self.unmade = set()
        self.going_on = None
        built = os.path.join(folder, "..", "troupe", "bin")
        os.makedirs(folder)
        os.makedirs(built)
        os.symlink(program, os.path.join(built, "troupe"))
        # what a user has installed for environments in Python; here the packages are those of scripts/setup
        python = os.path.join(built, "python3")
        with open(python, "w") as script:
            script.write(f'#!/bin/sh\nPYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{CLIENTS}" exec {sys.executable} -B "$@"\n')
        os.chmod(python, 0o755)
        if not any(LINK in block.commands() for block in page.shell_blocks()):
            os.symlink("../troupe/bin", os.path.join(folder, "bin"))
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
        if block.is_usage():
            return
        if "goes on" in block.markers:
            self.going_on = block.commands()[0]
            return
        self.output = ""
        other, self.going_on = block.markers.get("beside", self.going_on), None
        beside = self._start(other) if other else None
        commands = block.commands()
        try:
            for command in commands:
                expected = int(block.markers.get("exits with", 0)) if command == commands[-1] else 0
                self._run_command(block, command, expected, beside)
        finally:
            if beside:
                self._end(beside, signal.SIGINT)

    def _is_skipped(self, verb, command):
        """Without the dataset: a command that needs it, or what such a command would have made."""
        words = split_words(command)
        needs = PLACEHOLDER in command + "".join(self.page.files().get(w, "") for w in words)
        if self.dataset or not needs and not any(w == made or w.startswith(made + "/") for w in words for made in self.unmade):
            return False
        self.unmade |= set(self._outputs(command)) | ({"runs/latest"} if verb == "run" else set())
        return True

    @staticmethod
    def _outputs(command):
        return re.findall(r"(?:--out|--html|--json|--token-file|>) ([\w./][\w./-]*)", command)

    def _run_command(self, block, command, expected, beside):
        where = f"{self.page.name}:{block.line}: {command}"
        verb = next((shown.verb()[0] for shown in shown_in(command)), "")
        if self._is_skipped(verb, command):
            self.skipped.append(where)
            return
        if verb == "serve" and "--once-selftest" not in command:
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
        asks_for_text = re.search(r"--json\b|--version|--check|--write-metadata|--prune| > ", command)
        says = r"" if asks_for_text else SAYS.get(verb, r"")
        if expected == 0 and not re.search(says, text, re.M) or looks and not text.strip():
            raise Failed(f"{where}: printed nothing like {says or 'a word'!r}\n{text[-3000:]}")
        for written in self._outputs(command) if expected == 0 else []:
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

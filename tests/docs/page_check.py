"""What can be said of a page without running it: the form of its commands, their verbs and flags, its markers."""
import re
import subprocess

from page_commands import normal

MOST_NOT_RUN = 10
REASONS = ("published weights", "a GPU")
# Flags in our pages that other programs take.
FOREIGN_FLAGS = {"--ci", "--slow", "--all", "--install", "--prefix", "--preset", "--verbose", "--headless",
                 "--gtest_filter", "--fmad", "--logdir", "--every", "--project", "--pictures"}


class Binary:
    """The verbs of a troupe, and what its --help says of each."""

    def __init__(self, program):
        self.program = program
        self._help = {}
        shown = self._ask([])
        verbs = shown[shown.index("Subcommands:"):] if "Subcommands:" in shown else ""
        self.verbs = set(re.findall(r"^  ([a-z]+)\b", verbs, re.M)) | {"host"}

    def _ask(self, verb):
        return subprocess.run([self.program, *verb, "--help"], capture_output=True, text=True, timeout=60).stdout

    def help(self, verb):
        if verb not in self._help:
            self._help[verb] = self._ask(verb)
        return self._help[verb]

    def takes(self, verb, flag):
        return flag == "--help" or re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", self.help(verb)) is not None

    def needs_argument(self, verb):
        """Whether the verb alone, or with flags, is no command."""
        positionals = re.search(r"Positionals:(.*?)\n\n", self.help(verb) + "\n\n", re.S)
        return positionals is not None and "REQUIRED" in positionals.group(1)

    def every_flag(self):
        verbs = [(v,) for v in self.verbs] + [("convert", "weights"), ("convert", "dataset"), ("bench", "loader")]
        return {flag for verb in verbs for flag in re.findall(r"--[a-z][\w-]*", self.help(verb))} | {"--version"}


def is_command(shown, binary):
    if shown.is_mention() or shown.is_usage():
        return False
    words = shown.words()[len(shown.verb()):]
    return not (binary.needs_argument(shown.verb()) and words[0].startswith("--") and len(words) <= 2)


def find_mistakes(pages, binary):
    """One line for each command that is not in a fenced block, and each verb or flag that the binary lacks."""
    mistakes = []
    fenced = {page.name: {normal(s.text) for s in page.shown if s.form == "fenced"} for page in pages}
    common = fenced.get("docs/commands.md", set())
    flags = binary.every_flag() | FOREIGN_FLAGS
    for page in pages:
        for shown in page.shown:
            where = f"{page.name}:{shown.line}: `{shown.text}`"
            verb = shown.verb()
            if not verb or not verb[0].isalpha():
                continue
            if verb[0] not in binary.verbs:
                mistakes.append(f"{where}: troupe has no verb {verb[0]}")
                continue
            mistakes += [f"{where}: `troupe {' '.join(verb)}` has no flag {flag}"
                         for flag in shown.flags() if not binary.takes(verb, flag)]
            if shown.form == "indented" or shown.form == "inline" and is_command(shown, binary):
                if normal(shown.text) not in fenced[page.name] | common:
                    mistakes.append(f"{where}: {shown.form}; write it in a fenced block of this page")
        for line, text in [] if page.shows_other_programs else page.prose:
            for code in re.findall(r"`([^`]+)`", text):
                mistakes += [f"{page.name}:{line}: `{code}`: no verb has a flag {flag}"
                             for flag in re.findall(r"(?:^|\s)(--[a-z][\w-]*)(?![\w.-])", code) if flag not in flags]
    return mistakes + find_wrong_markers(pages)


def find_wrong_markers(pages):
    mistakes, not_run = [], 0
    for page in pages:
        for block in page.blocks:
            reason = block.markers.get("not run")
            if reason is None:
                continue
            not_run += len(block.commands())
            if not reason.startswith(REASONS):
                mistakes.append(f"{page.name}:{block.line}: not run: {reason}: expected {' or '.join(REASONS)}")
    if not_run > MOST_NOT_RUN:
        mistakes.append(f"{not_run} lines are not run, at most {MOST_NOT_RUN} may be")
    return mistakes

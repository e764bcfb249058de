"""What can be said of a page without running it: the form of its commands, their verbs and flags, its markers."""
import json
import re
import subprocess

from page_commands import normal

MOST_NOT_RUN = 10
REASONS = ("published weights", "a package of Python", "a GPU")
# Flags that other programs take, by a word of the paragraph that names one of them.
FOREIGN_FLAGS = {"--ci": "scripts/", "--cuda": "scripts/setup", "--slow": "scripts/test", "--all": "scripts/lint",
                 "--gtest_filter": "test_", "--fmad": "CUDA", "--logdir": "tensorboard", "--every": "metrics.jsonl",
                 "--project": "MLflow", "--pictures": "MLflow", "--rehearse": "gpu-check", "--bundle": "gpu-check"}
# Names with dots that are no keys: files; fault points and fields of files.
FILE = re.compile(r"\.(?:jsonl?|ya?ml|md|png|csv|html|h|cpp|py|txt|mp4|db|pkl|safetensors|parquet)$")
NO_KEYS = {"checkpoint.create", "checkpoint.write", "checkpoint.fsync", "checkpoint.manifest", "rollout.item",
           "optimizer.updates", "optimizer.groups", "model.byte_fallback"}
# Its list of other programs' keys; the rest of it is printed from the schema.
GENERATED = "docs/config.md"


class Binary:
    """The verbs of a troupe, and what its --help says of each."""

    def __init__(self, program):
        self.program = program
        self._help = {}
        self._schema = None
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
        verbs = [(v,) for v in self.verbs] + [("convert", "weights"), ("convert", "dataset"), ("bench", "loader"),
                                              ("env", "describe"), ("env", "list")]
        return {flag for verb in verbs for flag in re.findall(r"--[a-z][\w-]*", self.help(verb))} | {"--version"}

    def knows_key(self, key):
        """Whether a job has this key; so are names whose first word is no section of a job."""
        if self._schema is None:
            shown = subprocess.run([self.program, "config", "--schema"], capture_output=True, text=True, timeout=60)
            self._schema = json.loads(shown.stdout)
        words = re.sub(r"\[\w*\]", ".[]", key).split(".")
        return words[0] not in self._schema["properties"] or has_key(self._schema, words)


def has_key(schema, words):
    """Whether the place that the words lead to is in a JSON schema."""
    if not words:
        return True
    if any(has_key(choice, words) for choice in schema.get("anyOf", [])):
        return True
    if words[0] == "[]":
        return has_key(schema["items"], words[1:]) if "items" in schema else False
    if words[0] in schema.get("properties", {}):
        return has_key(schema["properties"][words[0]], words[1:])
    others = schema.get("additionalProperties")
    return isinstance(others, dict) and has_key(others, words[1:])


def is_command(shown, binary):
    if shown.is_mention() or shown.is_usage():
        return False
    words = shown.words()[len(shown.verb()):]
    return not (binary.needs_argument(shown.verb()) and words[0].startswith("--") and len(words) <= 2)


def find_mistakes(pages, binary):
    """One line for each command that is not in a fenced block, and each verb, flag or key that the binary lacks."""
    mistakes = []
    fenced = {page.name: {normal(s.text) for s in page.shown if s.form == "fenced"} for page in pages}
    common = fenced.get("docs/commands.md", set())
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
            mistakes += [f"{where}: a job has no key {key}" for key in shown.keys() if not binary.knows_key(key)]
            if shown.form == "indented" or shown.form == "inline" and is_command(shown, binary):
                if normal(shown.text) not in fenced[page.name] | common:
                    mistakes.append(f"{where}: {shown.form}; write it in a fenced block of this page")
        mistakes += find_wrong_blocks(page) + find_wrong_prose(page, binary)
    return mistakes + find_wrong_markers(pages)


def find_wrong_blocks(page):
    """Lines of fenced blocks that look like commands and would not be run as written."""
    mistakes = []
    for block in page.blocks:
        where = f"{page.name}:{block.line}"
        if "prints" in block.markers:
            mistakes += [f"{where}: `{shown.text}`: a command in a block of output" for shown in block.shown()]
        if not block.is_shell():
            continue
        mistakes += [f"{where}: `{line}`: nobody can type the prompt" for line in block.commands() if line[:2] in ("$ ", "% ")]
        if not block.is_usage():
            mistakes += [f"{where}: `{shown.text}`: a usage line among commands; nobody runs it"
                         for shown in block.shown() if shown.is_usage()]
    return mistakes


def find_wrong_prose(page, binary):
    if page.shows_other_programs:
        return []
    mistakes, flags = [], binary.every_flag()
    for line, text in page.prose:
        foreign = {flag for flag, program in FOREIGN_FLAGS.items() if program in text}
        for code in re.findall(r"`([^`]+)`", text):
            mistakes += [f"{page.name}:{line}: `{code}`: no verb has a flag {flag}"
                         for flag in re.findall(r"(?:^|\s)(--[A-Za-z][\w-]*)(?![\w.-])", code) if flag not in flags | foreign]
            key = re.match(r"^([a-z_]+(?:\.[a-z_]+|\[\d*\])+)(?:[=:]|$)", code)
            if not key or FILE.search(code) or code in NO_KEYS or page.name == GENERATED:
                continue
            if not binary.knows_key(key.group(1)):
                mistakes.append(f"{page.name}:{line}: `{code}`: a job has no key {key.group(1)}")
    return mistakes


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

"""Reads a page of documentation: the commands it shows, where, in which form, and what its markers say.

A command is `troupe VERB WORD...` or `bin/troupe VERB WORD...`, assignments to the environment before it included.
The verb alone is a mention. With a placeholder (JOB, [options], a|b, ...) it is a usage line: its verb and flags must
exist, and nobody can run it. All else is a command, and stands in a fenced block.

Markers are comments of Markdown, on a line of their own, about the next fenced block:
  <!-- not run: REASON -->            published weights, or a GPU
  <!-- exits with N -->               the exit code of its last command, otherwise 0
  <!-- prints -->                     the block is output: each line occurs in what the last command block printed
  <!-- beside: COMMAND -->            run while COMMAND runs
  <!-- file: NAME -->                 the block is the file NAME; a block that begins with `# NAME.yaml` is, too
  <!-- file: NAME from docs/PAGE -->  the file NAME of another page is needed here
and, about the whole page:
  <!-- flags of other programs -->    flags outside of our commands are not ours
"""
import re
import shlex
from dataclasses import dataclass, field

COMMAND = re.compile(r"^(?:[A-Z_]+=(?:\"[^\"]*\"|\S)* )*(?:bin/)?troupe (?=[a-z-])")
PLACEHOLDER = re.compile(r"(?:^|[ =,(\[|])[A-Z][A-Z_]*(?:\.\.\.)?(?=[ ,|\])=]|$)|\w\||\[[a-zA-Z-]|\.\.\.")
MARKER = re.compile(r"^\s*<!-- (not run|exits with|prints|beside|file):? ?(.*?) ?-->\s*$")
FENCE = re.compile(r"^(\s*)(`{3,})(.*)$")
TITLE = re.compile(r"^# (\S+\.yaml)\s*$")
SHELL = ("", "sh", "bash")


@dataclass
class Block:
    line: int
    language: str
    lines: list = field(default_factory=list)
    markers: dict = field(default_factory=dict)

    def commands(self):
        """Lines of a shell block, continued ones joined, without blank lines and comments."""
        joined = re.sub(r"\\\n\s*", "", "\n".join(self.lines))
        return [line.rstrip() for line in joined.split("\n") if line.strip() and not line.startswith("#")]

    def troupe_commands(self):
        """Those of ours; a line of a drawing is none."""
        return [line for line in self.commands() if COMMAND.match(line) and "──" not in line]

    def is_shell(self):
        if self.language not in SHELL or "prints" in self.markers or "file" in self.markers and self.title():
            return False
        return bool(self.troupe_commands())

    def title(self):
        """The name of the file that this block is; empty: it is none."""
        named = self.markers.get("file", "")
        if named and " from " not in named:
            return named
        first = TITLE.match(self.lines[0]) if self.lines else None
        return first.group(1) if first and self.language not in SHELL else ""


@dataclass
class Shown:
    """A command as the page shows it; form is fenced, indented or inline."""
    line: int
    form: str
    text: str

    def verb(self):
        words = self.words()
        return tuple(words[:2]) if words[:1] in (["convert"], ["bench"]) else tuple(words[:1])

    def words(self):
        return split_words(COMMAND.sub("", self.text))

    def is_mention(self):
        words = self.words()
        verb = self.verb()
        return len(words) <= len(verb) or not words[0].isalpha()  # `troupe --version`

    def is_usage(self):
        return bool(PLACEHOLDER.search(without_comment(COMMAND.sub("", self.text))))

    def flags(self):
        return [f for w in self.words() for f in re.findall(r"(?<![\w-])--[a-z][\w-]*(?![\w.-])", w)]


def without_comment(text):
    return re.sub(r"\s+#.*$", "", text)


def split_words(text):
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return without_comment(text).split()


def normal(text):
    """One spelling of a command, to find it again: without bin/, comment and `> FILE`."""
    text = re.sub(r"^bin/| > \S+$", "", without_comment(text).strip())
    return re.sub(r"\s+", " ", text)


class Page:
    def __init__(self, name, text):
        self.name = name
        self.blocks = []
        self.shown = []
        self.prose = []
        self.shows_other_programs = "<!-- flags of other programs -->" in text
        self._read(text)

    def files(self):
        return {block.title(): "\n".join(block.lines) + "\n" for block in self.blocks if block.title()}

    def shell_blocks(self):
        return [block for block in self.blocks if block.is_shell()]

    def _read(self, text):
        fence, block, markers, paragraph = None, None, {}, []
        for number, line in enumerate(text.split("\n"), 1):
            mark = FENCE.match(line)
            if fence:
                if mark and mark.group(2) == fence.group(2) and not mark.group(3).strip():
                    fence = self._close(block)
                else:
                    block.lines.append(line[len(fence.group(1)):] if line.startswith(fence.group(1)) else line)
                continue
            if mark:
                fence, block, markers = mark, Block(number, mark.group(3).strip(), markers=markers), {}
                self._inline(paragraph)
                paragraph = []
                continue
            marker = MARKER.match(line)
            if marker:
                markers[marker.group(1)] = marker.group(2)
            elif not line.strip():
                self._inline(paragraph)
                paragraph = []
            elif re.match(r"^ {4,}", line) and COMMAND.match(line.strip()):
                self.shown.append(Shown(number, "indented", line.strip()))
            else:
                paragraph.append((number, line))
        self._inline(paragraph)

    def _close(self, block):
        self.blocks.append(block)
        if block.is_shell():
            for line in block.troupe_commands():
                self.shown.append(Shown(block.line, "fenced", line))

    def _inline(self, paragraph):
        """Inline code of a paragraph; one may go on over the end of a line. In a table `\\|` is a bar."""
        if not paragraph:
            return
        text = " ".join(line.strip() for _, line in paragraph)
        self.prose.append((paragraph[0][0], text))
        for code in re.findall(r"`([^`]+)`", text):
            code = code.replace("\\|", "|")
            if COMMAND.match(code):
                self.shown.append(Shown(paragraph[0][0], "inline", code))

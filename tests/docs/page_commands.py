"""Reads a page of documentation: the commands it shows, where, in which form, and what its markers say.

A command is `troupe VERB WORD...` wherever it stands in a line, under any path, behind `cd DIR &&`, `sudo` or assignments to
the environment. The verb alone is a mention. With a placeholder it is a usage line: its verb and flags must exist, and
nobody can run it. Placeholders are words of capitals (JOB, RUN..., POOL=N), <words>, [words], and a choice a|b. All else is a
command, and stands in a fenced block; a block is wholly of usage lines or has none.

Markers are comments of Markdown, on a line of their own, about the next fenced block:
  <!-- not run: REASON -->            published weights, a package of Python, or a GPU
  <!-- exits with N -->               the exit code of its last command, otherwise 0
  <!-- prints -->                     the block is output: each line occurs in what the last command block printed
  <!-- beside: COMMAND -->            run while COMMAND runs
  <!-- goes on -->                    its one command runs beside the next command block
  <!-- file: NAME -->                 the block is the file NAME; a block that begins with `# NAME.yaml` is, too
  <!-- file: NAME from docs/PAGE -->  the file NAME of another page is needed here
and, about the whole page:
  <!-- flags of other programs -->    flags and keys outside of our commands are not ours
"""
import re
import shlex
from dataclasses import dataclass, field

COMMAND = re.compile(r"(?<![\w./-])(?:[\w.~+-]*/)*troupe (?=[a-z-])")
INDENTED = re.compile(r"^(?: {4,}|\t)\s*(?:[$%>] )?(?:cd \S+ && |sudo |[A-Z_]+=\S+ )*" + COMMAND.pattern)
# Where a command of a shell line ends.
END = re.compile(r"\s(?:&&|\|\||\||&)(?=\s|$)|;|\s#|\)$")
PLACEHOLDER = re.compile(r"^[A-Z][A-Z_]*(?:=[A-Z]+)?(?:\.\.\.)?$|<\w[^>]*>|^\[|^[^=]*\w\|\w|^--[a-z-]+=[A-Z]+$")
MARKER = re.compile(r"^\s*<!-- (not run|exits with|prints|beside|goes on|file):? ?(.*?) ?-->\s*$")
FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")
TITLE = re.compile(r"^# (\S+\.yaml)\s*$")
DRAWING = re.compile(r"──|\+--")
OTHER_LANGUAGES = ("yaml", "json", "cpp", "python", "cmake")


def commands_in(line):
    """Those of ours in a line of a shell."""
    found = []
    for start in COMMAND.finditer(line):
        end = END.search(line, start.end())
        found.append(line[start.start():end.start() if end else len(line)].rstrip())
    return found


def shown_in(line, number=0):
    return [Shown(number, "fenced", text) for text in commands_in(line)]


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

    def shown(self):
        return [shown for line in self.commands() for shown in shown_in(line, self.line)]

    def is_usage(self):
        return all(shown.is_usage() for shown in self.shown())

    def is_shell(self):
        if self.language in OTHER_LANGUAGES or "prints" in self.markers or self.title():
            return False
        return bool(self.shown()) and not any(map(DRAWING.search, self.lines))

    def title(self):
        """The name of the file that this block is; empty: it is none."""
        named = self.markers.get("file", "")
        if named and " from " not in named:
            return named
        first = TITLE.match(self.lines[0]) if self.lines else None
        return first.group(1) if first and self.language in OTHER_LANGUAGES else ""


@dataclass
class Shown:
    """A command as the page shows it; form is fenced, indented or inline."""
    line: int
    form: str
    text: str

    def verb(self):
        words = self.words()
        return tuple(words[:2]) if words[:1] in (["convert"], ["bench"], ["env"]) else tuple(words[:1])

    def words(self):
        return split_words(COMMAND.sub("", self.text, count=1))

    def is_mention(self):
        words = self.words()
        verb = self.verb()
        return len(words) <= len(verb) or not words[0].isalpha()  # `troupe --version`

    def is_usage(self):
        return any(PLACEHOLDER.search(word) for word in self.words())

    def flags(self):
        return [f for w in self.words() for f in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*(?![\w.-])", w)]

    def keys(self):
        """Keys of a job that it sets, such as training.steps."""
        set_by = re.compile(r"^(?:--)?([a-z_]+(?:\.[\w\[\]]+)+)=|^~([\w.\[\]]+)$")
        return [found.group(1) or found.group(2) for found in map(set_by.match, self.words()) if found]


def without_comment(text):
    return re.sub(r"\s+#.*$", "", text)


def split_words(text):
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return without_comment(text).split()


def normal(text):
    """One spelling of a command, to find it again: without its path, comment and `> FILE`."""
    text = re.sub(r" > \S+$", "", without_comment(COMMAND.sub("troupe ", text, count=1)).strip())
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
            elif INDENTED.match(line):
                self.shown += [Shown(number, "indented", text) for text in commands_in(line)]
            else:
                paragraph.append((number, line))
        self._inline(paragraph)

    def _close(self, block):
        self.blocks.append(block)
        if block.is_shell():
            self.shown += block.shown()

    def _inline(self, paragraph):
        """Inline code of a paragraph; one may go on over the end of a line. In a table `\\|` is a bar."""
        if not paragraph:
            return
        text = " ".join(line.strip() for _, line in paragraph)
        self.prose.append((paragraph[0][0], text))
        for code in re.findall(r"`([^`]+)`", text):
            found = commands_in(code.replace("\\|", "|"))
            self.shown += [Shown(paragraph[0][0], "inline", command) for command in found]

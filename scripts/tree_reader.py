"""What scripts/check-tree reads out of files: namespaces and types of C++, targets of CMake, headings of Markdown."""
import os
import re

# ---- C++ -------------------------------------------------------------------------------------------------------------

_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/'                                 # comments
    r'|R"(?P<raw>[^(\s]{0,16})\(.*?\)(?P=raw)"'           # raw strings
    r'|"(?:\\.|[^"\\\n])*"'                               # strings
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'",             # characters, but not the ' of 1'000
    re.DOTALL)
_DIRECTIVE = re.compile(r'^[ \t]*#(?:\\\n|[^\n])*', re.MULTILINE)
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
_NAMESPACE = re.compile(r'(?:\[\[.*\]\]\s*)?(?:inline\s+)?namespace(?:\s+(?P<name>[\w:]+))?\s*$')
_TYPE = re.compile(r'(?:^|[\s>])(?:struct|class|union|enum(?:\s+(?:class|struct))?)'
                   r'(?:\s+alignas\s*\([^)]*\)|\s*\[\[[^\]]*\]\])*\s+(?P<name>[A-Za-z_]\w*)(?:\s+final)?'
                   r'\s*(?::(?!:).*)?$', re.DOTALL)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def includes(text):
    """(line, '<' or '"', what is included) of every include."""
    return [(line_of(text, m.start(1)), m.group(1), m.group(2)) for m in _INCLUDE.finditer(text)]


def code_of(text):
    """The text without comments, contents of literals and preprocessor lines; lines keep their numbers."""
    def blank(match):
        literal = '""' if match.group()[0] in "\"R'" else " "
        return literal + "\n" * match.group().count("\n")
    text = _NOT_CODE.sub(blank, text)
    return _DIRECTIVE.sub(lambda m: "\n" * m.group().count("\n"), text)


def namespaces_and_types(text):
    """Two lists: (line, outermost namespace as it is written, '' for an unnamed one), and (line, namespace, type) of
    every type that is defined directly in a namespace."""
    code = code_of(text)
    outermost, types = [], []
    scopes = []  # a namespace's name, or None: any other pair of braces
    start = 0
    for match in re.finditer(r"[{};]", code):
        head = code[start:match.start()].strip()
        start = match.end()
        if match.group() == "}":
            if scopes:
                scopes.pop()
            continue
        if match.group() == ";" or None in scopes:
            if match.group() == "{":
                scopes.append(None)
            continue
        line = line_of(code, match.start())
        namespace = _NAMESPACE.match(head)
        if namespace:
            name = namespace.group("name") or ""
            if not any(scopes):
                outermost.append((line, name))
            scopes.append(name or "(unnamed)")
        elif re.fullmatch(r'extern\s*""', head):
            scopes.append("")
        else:
            named = None if head.endswith(")") else _TYPE.search(head)
            if named:
                types.append((line, "::".join(s for s in scopes if s), named.group("name")))
            scopes.append(None)
    return outermost, types


# ---- CMake -----------------------------------------------------------------------------------------------------------

_CMAKE_TOKEN = re.compile(
    r'#\[(?P<c>=*)\[.*?\](?P=c)\]|#[^\n]*'                # comments
    r'|\[(?P<b>=*)\[(?P<bracket>.*?)\](?P=b)\]'           # bracket arguments
    r'|"(?P<quoted>(?:\\.|[^"\\])*)"'
    r'|(?P<paren>[()])|(?P<word>(?:\$\{[^}]*\}|\\.|[^\s()#"])+)', re.DOTALL)
_BUILD = "<build>"
_KEYWORDS = {"SOURCES", "DEPENDS", "PRIVATE", "PUBLIC", "INTERFACE", "OPTIONS", "ATEN", "LABELS", "TIMEOUT",
             "DEFINITIONS", "PROGRAMS", "OUTPUT", "COMMAND", "DEPFILE", "COMMENT", "VERBATIM", "WORKING_DIRECTORY"}


class Target:
    """A library or a program: where it is declared, its source files and the targets that it links."""

    def __init__(self, name, folder, is_program, page, line):
        self.name, self.folder, self.is_program, self.page, self.line = name, folder, is_program, page, line
        self.sources, self.links = set(), set()


class CMakeTree:
    """The targets of a tree, read from its CMakeLists.txt files with both branches of every if(). Knows set,
    list(APPEND|PREPEND), foreach, add_subdirectory, add_library, add_executable, target_link_libraries, target_sources,
    add_custom_command, the troupe_* functions of cmake/TroupeTargets.cmake and troupe_device_module of cmake/TroupeCuda.cmake."""

    def __init__(self, root):
        self.root = root
        self.targets = {}
        self.aliases = {}
        self.generated = {}   # file of the build folder: what it is made from
        self.missing = []     # (CMakeLists.txt, line, listed file that does not exist)
        if os.path.exists(os.path.join(root, "CMakeLists.txt")):
            self._folder("", {})

    def linked_from(self, folders):
        """Names of the targets that the programs declared under the folders link, those programs included."""
        todo = [t.name for t in self.targets.values() if t.is_program and t.folder.split("/")[0] in folders]
        seen = set()
        while todo:
            name = todo.pop()
            name = self.aliases.get(name, name)
            if name in self.targets and name not in seen:
                seen.add(name)
                todo.extend(self.targets[name].links)
        return seen

    def _folder(self, folder, variables):
        page = os.path.join(folder, "CMakeLists.txt")
        with open(os.path.join(self.root, page), encoding="utf-8") as file:
            commands = _cmake_commands(file.read())
        variables = dict(variables, CMAKE_SOURCE_DIR=[self.root], CMAKE_BINARY_DIR=[_BUILD],
                         CMAKE_CURRENT_SOURCE_DIR=[os.path.join(self.root, folder).rstrip("/")],
                         CMAKE_CURRENT_BINARY_DIR=[os.path.join(_BUILD, folder).rstrip("/")])
        self._run(commands, folder, page, variables)

    def _run(self, commands, folder, page, variables):
        at = 0
        while at < len(commands):
            name, line, raw = commands[at]
            at += 1
            if name in ("function", "macro"):
                at = _end_of_block(commands, at, name) + 1
            elif name == "foreach":
                end = _end_of_block(commands, at, name)
                loop, *items = _expand(raw, variables)
                if items[:2] == ["IN", "LISTS"]:
                    items = [value for key in items[2:] for value in variables.get(key, [])]
                elif items[:2] == ["IN", "ITEMS"]:
                    items = items[2:]
                for item in items:
                    variables[loop] = [item]
                    self._run(commands[at:end], folder, page, variables)
                at = end + 1
            else:
                self._command(name, line, _expand(raw, variables), folder, page, variables)

    def _command(self, name, line, args, folder, page, variables):
        if name == "set" and args:
            variables[args[0]] = args[1:args.index("CACHE")] if "CACHE" in args else args[1:]
        elif name == "list" and args[:1] in (["APPEND"], ["PREPEND"]):
            variables[args[1]] = variables.get(args[1], []) + args[2:]
        elif name == "troupe_cuda_objects":  # its objects count as what they are made from
            sources = args[1:args.index("OPTIONS")] if "OPTIONS" in args else args[1:]
            variables[args[0]] = variables.get(args[0], []) + sources
        elif name == "add_subdirectory" and args:
            inner = os.path.normpath(os.path.join(folder, args[0]))
            if os.path.exists(os.path.join(self.root, inner, "CMakeLists.txt")):
                self._folder(inner, variables)
        elif name == "add_custom_command":
            named = _by_keyword(args)
            for output in named.get("OUTPUT", []):
                self.generated[output] = named.get("DEPENDS", [])
        elif name in ("add_library", "add_executable") and args[1:2] == ["ALIAS"]:
            self.aliases[args[0]] = args[2]
        elif name in ("add_library", "add_executable"):
            kinds = ("STATIC", "SHARED", "OBJECT", "INTERFACE", "MODULE")
            sources = [a for a in args[1:] if a not in kinds]
            self._target(args[0], folder, name == "add_executable", page, line, sources, [])
        elif name == "troupe_device_module":
            named = _by_keyword(args[1:])
            self._target(args[0], folder, False, page, line, [], named.get("ARCHIVES", []) + named.get("LIBRARIES", []))
        elif name in ("target_link_libraries", "target_sources"):
            target = self.targets.get(self.aliases.get(args[0], args[0]))
            values = [a for a in args[1:] if a not in _KEYWORDS]
            if target and name == "target_sources":
                self._add_sources(target, folder, page, line, values)
            elif target:
                target.links.update(values)
        elif name == "troupe_library":
            named = _by_keyword(args[1:])
            self.aliases["troupe::" + args[0]] = "troupe_" + args[0]
            self._target("troupe_" + args[0], folder, False, page, line, named.get("SOURCES", []),
                         named.get("DEPENDS", []) + named.get("PRIVATE", []))
        elif name in ("troupe_binary", "troupe_device_bench", "troupe_tests", "troupe_fuzz", "troupe_fuzz_reader"):
            named = _by_keyword(args[1:])
            sources = [args[0] + ".cpp"] if name.startswith("troupe_fuzz") else named.get("SOURCES", [])
            target = "test_" + args[0] if name == "troupe_tests" else args[0]
            self._target(target, folder, True, page, line, sources, named.get("DEPENDS", []))

    def _target(self, name, folder, is_program, page, line, sources, links):
        target = self.targets.setdefault(name, Target(name, folder, is_program, page, line))
        target.links.update(links)
        self._add_sources(target, folder, page, line, sources)

    def _add_sources(self, target, folder, page, line, sources):
        for source in sources:
            if source in self.generated:  # an object file, say, counts as what it is made from
                made_from = [s for s in self.generated[source] if s.endswith((".cpp", ".cu"))]
                self._add_sources(target, folder, page, line, made_from)
                continue
            path = os.path.normpath(os.path.relpath(os.path.join(self.root, folder, source), self.root))
            if source.startswith(_BUILD) or not os.path.exists(os.path.join(self.root, path)):
                self.missing.append((page, line, source))
            else:
                target.sources.add(path)


def _cmake_commands(text):
    """(name, line, arguments) of every command; an argument is (text, is it quoted)."""
    commands, depth, name, line = [], 0, None, 0
    args = []
    for match in _CMAKE_TOKEN.finditer(text):
        if match.group("paren") == "(":
            depth += 1
        elif match.group("paren") == ")":
            depth -= 1
            if depth == 0:
                commands.append((name.lower(), line, args))
                args = []
        elif depth == 0 and match.group("word"):
            name, line = match.group("word"), line_of(text, match.start())
        elif match.group("word") is not None:
            args.append((match.group("word"), False))
        elif match.group("quoted") is not None or match.group("bracket") is not None:
            args.append((match.group("quoted") or match.group("bracket") or "", True))
    return commands


def _end_of_block(commands, at, name):
    depth = 1
    while at < len(commands):
        depth += (commands[at][0] == name) - (commands[at][0] == "end" + name)
        if depth == 0:
            return at
        at += 1
    return at


def _expand(args, variables):
    values = []
    for text, quoted in args:
        whole = re.fullmatch(r"\$\{(\w+)\}", text)
        if whole and not quoted:
            values.extend(variables.get(whole.group(1), []))
        else:
            values.append(re.sub(r"\$\{(\w+)\}", lambda m: ";".join(variables.get(m.group(1), [])), text))
    return values


def _by_keyword(args):
    named, key = {}, None
    for arg in args:
        if arg in _KEYWORDS:
            key = arg
            named.setdefault(key, [])
        elif key:
            named[key].append(arg)
    return named


# ---- Markdown --------------------------------------------------------------------------------------------------------

def markdown_lines(text):
    """(line number, line, is it inside a fenced block) of every line; the fences count as inside."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence is None and mark:
            fence = mark.group(1)
            yield number, line, True
        elif fence is not None:
            yield number, line, True
            if mark and mark.group(1).startswith(fence) and line.strip() == mark.group(1):
                fence = None
        else:
            yield number, line, False


def headings(text):
    """The texts of a page's headings, without markup."""
    found = []
    for _, line, fenced in markdown_lines(text):
        heading = None if fenced else re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line)
        if heading:
            found.append(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).replace("`", "").replace("*", ""))
    return found


def anchors(text):
    """The anchors of a page's headings as GitHub makes them: small letters, no punctuation, hyphens for blanks, -1, -2
    for the second and third heading of one name."""
    seen, found = {}, set()
    for heading in headings(text):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(slug if slug not in seen else f"{slug}-{seen[slug]}")
        seen[slug] = seen.get(slug, 0) + 1
    return found


def raw_string_lines(text):
    """Numbers of the lines that a raw string literal covers: its text cannot be wrapped."""
    lines = set()
    for literal in re.finditer(r'R"([^()\\\s]{0,16})\(.*?\)\1"', text, re.DOTALL):
        first = text.count("\n", 0, literal.start()) + 1
        lines.update(range(first, first + literal.group().count("\n") + 1))
    return lines

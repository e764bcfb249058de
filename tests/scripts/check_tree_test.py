"""scripts/check-tree on small trees: a clean one passes, and one with a planted offence fails and names file and rule.

  python3 -B -m unittest tests/scripts/check_tree_test.py
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
CHECK_TREE = os.path.join(SCRIPTS, "check-tree")


def header(namespace, code, includes=""):
    comments = "/// What it is.\n/// In which unit.\n/// Who calls it.\n"
    return source(namespace, code, f"#pragma once\n\n{includes}{comments}")


def source(namespace, code, includes=""):
    return f"{includes}namespace {namespace} {{\n{code}}}  // namespace {namespace}\n"


def include(*paths):
    return "".join(f'#include "{path}"\n' for path in paths) + "\n"


# A library of two folders, data/index on top of data, and a program that links both.
CLEAN_TREE = {
    ".clang-format": "BasedOnStyle: Google\nColumnLimit: 120\nReflowComments: false\n",
    "README.md": "# Small\n\nSee [the data](docs/data.md#what-it-is-twice).\n",
    "docs/data.md": "# Data\n\n## What it is, `twice`\n\nBack to [the start](../README.md), said in README.md.\n",
    "CMakeLists.txt": "foreach(folder base data app)\n  add_subdirectory(${folder})\nendforeach()\n",
    "base/CMakeLists.txt": "troupe_library(base SOURCES number.cpp)\n",
    "base/number.h": header("troupe::base", "int number();\n"),
    "base/number.cpp": source("troupe::base", "int number() { return 1; }\n", include("base/number.h")),
    "data/CMakeLists.txt": "troupe_library(data SOURCES set.cpp DEPENDS troupe::base)\nadd_subdirectory(index)\n",
    "data/set.h": header("troupe::data", "/// As docs/data.md#data says.\nstruct Set {};\n", include("base/number.h")),
    "data/set.cpp": source("troupe::data", "int size() { return 0; }\n", include("data/set.h")),
    "data/index/CMakeLists.txt": "set(files index.cpp)\ntroupe_library(index SOURCES ${files} DEPENDS troupe::data)\n",
    "data/index/index.h": header("troupe::data", "struct Index {};\n", include("data/set.h")),
    "data/index/index.cpp": source("troupe::data", "int entries() { return 0; }\n", include("data/index/index.h")),
    "app/CMakeLists.txt": "troupe_binary(troupe SOURCES main.cpp DEPENDS troupe::index)\n",
    "app/main.cpp": include("data/index/index.h") + "int main() { return 0; }\n",
}
CLEAN_TABLES = {
    "SUBFOLDER_EDGES": {"base": "", "data": "", "data/index": "data", "app": ""},
    "OTHER_PAGES": {},
    "OTHER_NAMESPACES": {},
}


class CheckTreeTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="check-tree-")
        self.addCleanup(shutil.rmtree, self.root)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        for path, text in CLEAN_TREE.items():
            self.write(path, text)
        self.write_tables()

    def write(self, path, text):
        file = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)

    def append(self, path, text):
        with open(os.path.join(self.root, path), "a", encoding="utf-8") as out:
            out.write(text)

    def write_tables(self, **tables):
        """The project's tables with the small tree's in place of those that name its files."""
        with open(os.path.join(SCRIPTS, "tree_rules.py"), encoding="utf-8") as file:
            text = file.read()
        for name, value in {**CLEAN_TABLES, **tables}.items():
            entries = "".join(f"    {entry!r}: {of!r},\n" for entry, of in value.items()).replace("'", '"')
            text += f"\n{name} = {{\n{entries}}}\n"
        self.write("scripts/tree_rules.py", text)

    def check(self, *switches, environment=None):
        command = [sys.executable, CHECK_TREE, "--root", self.root, *switches]
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        self.assertEqual(result.stderr, "")
        return result

    def assert_refused(self, place, rule, words="", switches=("--no-format",), environment=None):
        """Exit code 1, and exactly one problem: at this place, of this rule, with these words."""
        result = self.check(*switches, environment=environment)
        self.assertEqual(result.returncode, 1, result.stdout)
        problems = [line for line in result.stdout.splitlines() if line.endswith("]")]
        self.assertEqual(len(problems), 1, result.stdout)
        self.assertTrue(problems[0].startswith(f"check-tree: {place}"), problems[0])
        self.assertTrue(problems[0].endswith(f" [{rule}]"), problems[0])
        self.assertIn(words, problems[0])

    def assert_accepted(self, *switches):
        result = self.check(*switches)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "check-tree: ok")

    def test_clean_tree(self):
        self.assert_accepted()

    def test_share_of_comments_is_printed(self):
        self.assertRegex(self.check("--no-format").stdout, r"\d+\.\d % of the headers' lines are comments")

    # includes

    def test_include_between_top_level_folders(self):
        self.append("base/number.h", '#include "data/set.h"\n')
        self.assert_refused("base/number.h:9:", "folder edges", "base may not include data")

    def test_product_includes_tests(self):
        self.append("app/main.cpp", '#include "tests/support/x.h"\n')
        self.assert_refused("app/main.cpp:4:", "folder edges", "app may not include tests")

    def test_test_without_the_headers_that_it_uses(self):
        self.write("tests/CMakeLists.txt", "troupe_tests(small SOURCES small_test.cpp)\n")
        self.append("CMakeLists.txt", "add_subdirectory(tests)\n")
        code = "TEST(Small, Holds) { EXPECT_EQ(fmt::format(name), name); }\n"
        self.write("tests/small_test.cpp", source("troupe::testing", code, include("tests/fixture.h")))
        self.write("tests/fixture.h", "#include <fmt/format.h>\n")
        self.assert_refused("tests/small_test.cpp:4:", "test headers", "include <gtest/gtest.h>")
        self.write("tests/fixture.h", "#include <gmock/gmock.h>\n")
        self.assert_refused("tests/small_test.cpp:4:", "test headers", "include <fmt/format.h>")
        self.append("tests/fixture.h", "#include <fmt/format.h>\n")
        self.assert_accepted("--no-format")

    def test_third_party_header_outside_its_owner(self):
        self.append("base/number.cpp", "#include <zmq.h>\n")
        self.assert_refused("base/number.cpp:6:", "header owners", "ZeroMQ belongs to comm")

    def test_edge_that_is_not_in_the_table(self):
        self.write_tables(SUBFOLDER_EDGES={"base": "", "data": "", "data/index": "data", "data/video": "", "app": ""})
        self.write("data/video/frame.h", header("troupe::data", "struct Frame {};\n", include("data/index/index.h")))
        self.append("app/main.cpp", '#include "data/video/frame.h"\n')
        self.assert_refused("data/video/frame.h:3:", "sub-folder edges", "data/video may not include data/index")

    def test_edge_that_no_include_uses(self):
        self.write_tables(SUBFOLDER_EDGES={"base": "", "data": "", "data/index": "data base", "app": ""})
        self.assert_refused("scripts/tree_rules.py:", "sub-folder edges", "no file of data/index includes base")

    def test_folder_without_entry(self):
        self.write("base/inner/x.h", header("troupe::base", "int x();\n"))
        self.append("app/main.cpp", '#include "base/inner/x.h"\n')
        self.assert_refused("scripts/tree_rules.py:", "sub-folder edges", "base/inner has no entry")

    def test_entry_without_folder(self):
        self.write_tables(SUBFOLDER_EDGES={"base": "", "data": "", "data/index": "data", "data/video": "", "app": ""})
        self.assert_refused("scripts/tree_rules.py:", "sub-folder edges", "data/video holds no C++ file")

    def test_cycle_in_the_table(self):
        self.write_tables(SUBFOLDER_EDGES={"base": "", "data": "data/index", "data/index": "data", "app": ""})
        self.append("data/set.h", '#include "data/index/index.h"\n')
        self.assert_refused("scripts/tree_rules.py:", "sub-folder cycles", "data -> data/index -> data")

    # citations

    def test_citation_without_target(self):
        self.append("base/number.cpp", "// The formula of rl.md 12.2.\n")
        self.assert_refused("base/number.cpp:6:", "citations", "rl.md is no file of the repository")

    def test_citation_of_a_page_of_docs_by_its_bare_name(self):
        self.append("base/number.cpp", "// See data.md 1.\n")
        self.assert_refused("base/number.cpp:6:", "citations", "write docs/data.md")

    def test_citation_by_number(self):
        self.append("base/number.cpp", "// See docs/data.md 4.2.\n")
        self.assert_refused("base/number.cpp:6:", "citations", "docs/data.md has no section 4.2")

    def test_broken_anchor_in_code(self):
        self.append("base/number.cpp", "// See docs/data.md#nowhere.\n")
        self.assert_refused("base/number.cpp:6:", "citations", "docs/data.md has no heading #nowhere")

    def test_broken_anchor_in_a_link(self):
        self.append("README.md", "[x](docs/data.md#nowhere)\n")
        self.assert_refused("README.md:4:", "citations", "docs/data.md has no heading #nowhere")

    def test_broken_link(self):
        self.append("docs/data.md", "[x](set.h)\n")
        self.assert_refused("docs/data.md:6:", "citations", "the link to set.h leads nowhere")

    def test_citation_in_a_script(self):
        self.write("scripts/go", "#!/bin/sh\n# see rl.md\n")
        self.assert_refused("scripts/go:2:", "citations", "rl.md")

    def test_records_may_cite_what_they_like(self):
        self.write("bench/results/old.md", "# Old\n\nAs rl.md 12.2 wants.\n")
        self.assert_accepted("--no-format")

    def test_written_page_is_allowed_while_somebody_mentions_it(self):
        self.write_tables(OTHER_PAGES={"written.md": "the program writes it"})
        self.assert_refused("scripts/tree_rules.py:", "citations", "nothing mentions written")
        self.append("base/number.cpp", "// out/written.md\n")
        self.assert_accepted("--no-format")

    # files that nobody uses

    def test_source_that_nobody_links(self):
        self.append("base/CMakeLists.txt", "troupe_library(lonely SOURCES lonely.cpp)\n")
        self.write("base/lonely.cpp", source("troupe::base", "int lonely() { return 1; }\n"))
        self.assert_refused("base/lonely.cpp:1:", "linked sources", "no program of app/ or examples/ links this file")

    def test_source_in_no_list(self):
        self.write("base/lonely.cpp", source("troupe::base", "int lonely() { return 1; }\n"))
        self.assert_refused("base/lonely.cpp:1:", "linked sources", "no CMakeLists.txt lists this file")

    def test_listed_source_that_does_not_exist(self):
        self.append("base/CMakeLists.txt", "troupe_library(gone SOURCES gone.cpp)\n")
        self.assert_refused("base/CMakeLists.txt:2:", "linked sources", "lists gone.cpp, which does not exist")

    def test_object_of_a_command_counts_as_its_source(self):
        self.append("base/CMakeLists.txt", (
            "foreach(name blend)\n  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o)\n"
            "  add_custom_command(OUTPUT ${object} COMMAND nvcc DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu)\n"
            "  list(APPEND objects ${object})\nendforeach()\nadd_library(blending STATIC ${objects})\n"))
        self.write("base/blend.cu", source("troupe::base", "int blend() { return 1; }\n"))
        self.assert_refused("base/blend.cu:1:", "linked sources", "target blending")
        self.append("base/CMakeLists.txt", "target_link_libraries(troupe_base PUBLIC blending)\n")
        self.assert_accepted("--no-format")

    def test_header_that_nobody_includes(self):
        self.write("base/lonely.h", header("troupe::base", "int lonely();\n"))
        self.assert_refused("base/lonely.h:1:", "used headers", "no file includes this header")

    # names

    def test_two_types_of_one_name(self):
        self.append("data/index/index.h", "namespace troupe::data {\nstruct Set {};\n}  // namespace troupe::data\n")
        self.assert_refused("data/set.h:10:", "type names", "troupe::data::Set is defined in data/index/index.h:12 too")

    def test_one_name_in_two_namespaces(self):
        self.append("data/index/index.h", "/// Its own.\nnamespace troupe::data::inner {\nstruct Set {};\n}\n")
        self.assert_accepted("--no-format")

    def test_namespace_of_another_folder(self):
        self.write("base/number.cpp", source("troupe::data", "int number() { return 1; }\n", include("base/number.h")))
        self.assert_refused("base/number.cpp:3:", "namespaces", "troupe::data; here it must be troupe::base")

    # comments and layout

    def test_header_without_public_comment(self):
        comments = "// What it is.\n// In which unit.\n// Who calls it.\n"
        text = source("troupe::data", "struct Index {};\n", "#pragma once\n\n" + include("data/set.h") + comments)
        self.write("data/index/index.h", text)
        self.assert_refused("data/index/index.h:1:", "public comments")

    def test_too_few_comments(self):
        self.append("base/number.h", "int f();\n" * 30)
        self.assert_refused("scripts/tree_rules.py:", "comment share", "first in base")

    def test_long_file(self):
        self.append("base/number.cpp", "// more\n" * 500)
        self.assert_refused("base/number.cpp:501:", "file length", "505 lines")

    def test_long_readme(self):
        self.append("README.md", "more\n" * 200)
        self.assert_refused("README.md:200:", "file length")

    def test_long_line_of_code(self):
        self.append("base/number.cpp", "// " + "x " * 59 + "\n")
        self.assert_refused("base/number.cpp:6:", "line length", "121 columns")

    def test_long_line_of_a_page(self):
        words = "x " * 60
        self.append("docs/data.md", f"| {words}|\n```\n{words}\n```\n- [{words}](../README.md)\n")
        self.assert_accepted("--no-format")
        self.append("docs/data.md", f"\n{words}\n")
        self.assert_refused("docs/data.md:12:", "line length", "120 columns")

    # format

    def test_unformatted_file(self):
        self.append("app/main.cpp", "int  twice( ) ;\n")
        self.assert_refused("app/main.cpp:4:", "format", "clang-format would change this file", switches=())

    def test_no_clang_format(self):
        programs = os.path.join(self.root, "programs")
        os.mkdir(programs)
        os.symlink(shutil.which("git"), os.path.join(programs, "git"))
        self.write(".gitignore", "/programs/\n")
        environment = {"PATH": programs}
        self.assert_refused(".clang-format:1:", "format", "clang-format-14", switches=(), environment=environment)


if __name__ == "__main__":
    unittest.main()

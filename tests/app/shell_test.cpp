// `troupe completion`, `troupe man` and `troupe --version`: what a shell and a package get.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class ShellTest : public ::testing::Test {
 protected:
  ProgramEnd troupe(const std::vector<std::string>& words) const {
    return run_program(words, {.cwd = dir_.path(), .env = {}});
  }
  /// The verbs that --help lists.
  std::vector<std::string> verbs() const {
    std::istringstream help(troupe({"--help"}).out);
    std::vector<std::string> verbs;
    bool listed = false;
    for (std::string line; std::getline(help, line);) {
      if (listed && line.size() > 2 && line[2] != ' ') verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
      listed = listed || line.starts_with("Subcommands:");
    }
    EXPECT_GT(verbs.size(), 15U);
    return verbs;
  }
  const ScratchFolder dir_;
};

TEST_F(ShellTest, CompletionsNameEveryVerbAndBashReadsItsOwn) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const ProgramEnd end = troupe({"completion", shell});
    ASSERT_EQ(end.exit_code, 0) << end.err;
    for (const std::string& verb : verbs()) EXPECT_THAT(end.out, HasSubstr(verb)) << shell;
    EXPECT_THAT(end.out, HasSubstr("training.steps=")) << shell;
    EXPECT_THAT(end.out, HasSubstr("recipes/quickstart_rl.yaml")) << shell;
    std::ofstream(dir_ / shell) << end.out;
  }
  std::filesystem::create_directories(dir_ / "runs/first-run");
  const std::string probe =
      "cd " + dir_.path() +
      "; source ./bash; t() { COMP_WORDS=(troupe \"$@\"); COMP_CWORD=$#; _troupe 2>/dev/null; "
      "echo \"[${COMPREPLY[*]}]\"; }; t conv; t run --resu; t run optimizer.l; t convert data; t eval fir";
  std::ofstream(dir_ / "probe") << probe;
  ASSERT_EQ(std::system(("bash " + (dir_ / "probe") + " > " + (dir_ / "said")).c_str()), 0);
  EXPECT_EQ(text_of(dir_ / "said"), "[convert]\n[--resume]\n[optimizer.lr=]\n[dataset]\n[first-run]\n");
  EXPECT_THAT(troupe({"completion", "tcsh"}).err, HasSubstr("there is for bash, zsh and fish"));
}

TEST_F(ShellTest, EveryVerbHasAManualPageWithItsFlags) {
  expect_end(troupe({"man", "--out", dir_ / "man"}), 0);
  for (const std::string& verb : verbs())
    EXPECT_TRUE(std::filesystem::exists(dir_ / "man/troupe-" + verb + ".1")) << verb;
  const std::string page = text_of(dir_ / "man/troupe-run.1");
  EXPECT_TRUE(page.starts_with(".TH TROUPE\\-RUN 1")) << page;
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-resume\\fR \\fIVALUE\\fR"));
  EXPECT_TRUE(std::filesystem::exists(dir_ / "man/troupe-convert-dataset.1"));
}

TEST_F(ShellTest, TheVersionNamesWhatItWasBuiltFrom) {
  const std::string text = troupe({"--version"}).out;
  for (const char* line :
       {"troupe 0.1.0", "\ncommit    ", "\nbuild     ", "\nLibTorch  2.", "\nFFmpeg    5.", "\nMuJoCo    3."})
    EXPECT_THAT(text, HasSubstr(line));
}

}  // namespace
}  // namespace troupe::app

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
    for (const char* recipe : {"recipes/quickstart_rl.yaml", "quickstart:rl", " rl_cartpole_ppo"})
      EXPECT_THAT(end.out, HasSubstr(recipe)) << shell;
    std::ofstream(dir_ / shell) << end.out;
  }
  std::filesystem::create_directories(dir_ / "runs/first-run");
  const std::string probe =
      "cd " + dir_.path() +
      "; source ./bash; t() { COMP_WORDS=(troupe \"$@\"); COMP_CWORD=$#; COMP_LINE=${COMP_WORDS[*]}; "
      "COMP_POINT=${#COMP_LINE}; _troupe 2>/dev/null; echo \"[${COMPREPLY[*]}]\"; }; "
      "t conv; t run --resu; t run optimizer.l; t convert data; t eval fir\n"
      // as readline parts them
      "t run optimizer.lr =; t run quickstart:s; t plan rl_pendulum\n"
      "t bench loader --js; t bench lo; t run --resume au; t export x --format g; t completion z\n"
      "t compare fir; t runs fir; t scale fir; t eval x --compare fir";
  std::ofstream(dir_ / "probe") << probe;
  ASSERT_EQ(std::system(("bash " + (dir_ / "probe") + " > " + (dir_ / "said")).c_str()), 0);
  EXPECT_EQ(text_of(dir_ / "said"),
            "[convert]\n[--resume]\n[optimizer.lazy= optimizer.lr=]\n[dataset]\n[first-run]\n"
            "[]\n[sft]\n[rl_pendulum_sac]\n"
            "[--json]\n[loader]\n[auto]\n[gear]\n[zsh]\n"
            "[first-run]\n[first-run]\n[first-run]\n[first-run]\n");
  EXPECT_THAT(text_of(dir_ / "fish"), HasSubstr("-l format -x -a 'safetensors gear lora'"));
  EXPECT_THAT(text_of(dir_ / "zsh"), HasSubstr("then _troupe \"$@\"")) << "the first Tab, which reads the file";
  EXPECT_THAT(troupe({"completion", "tcsh"}).err, HasSubstr("there is for bash, zsh and fish"));
}

TEST_F(ShellTest, EveryVerbHasAManualPageWithItsFlags) {
  expect_end(troupe({"man", "--out", dir_ / "man"}), 0);
  for (const std::string& verb : verbs())
    EXPECT_TRUE(std::filesystem::exists(dir_ / "man/troupe-" + verb + ".1")) << verb;
  const std::string page = text_of(dir_ / "man/troupe-run.1");
  EXPECT_TRUE(page.starts_with(".TH TROUPE\\-RUN 1")) << page;
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-resume\\fR \\fIVALUE\\fR"));
  EXPECT_THAT(page, HasSubstr("[\\fIKEY=VALUE ...\\fR]"));
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

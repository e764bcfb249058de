#include "tests/lab/lab_job.h"

#include <algorithm>
#include <cstdlib>

#include "tests/support/folder_files.h"

namespace troupe::testing {

namespace {

constexpr std::array<const char*, 3> kNames{"a", "b", "c"};
constexpr int kControllerPort = 7710;

std::string binary() {
  const char* path = std::getenv("TROUPE_BINARY");
  if (!path) throw std::runtime_error("TROUPE_BINARY does not name the program; run the test through ctest");
  return path;
}

std::string made_folder(const std::string& path) {
  std::filesystem::create_directories(path);
  return path;
}

LabJob::Words joined(LabJob::Words words, const LabJob::Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

LabJob::LabJob(Kind kind, int steps, std::uint64_t seed, const std::string& preload)
    : lab({.names = {kNames.begin(), kNames.end()},
           .seed = seed,
           .hidden = {made_folder(scratch_ / "runs")},
           .preload = preload}),
      kind_(kind),
      steps_(steps) {
  const auto made = write_toy_dataset(scratch_ / "data", {.episodes = 40, .frames = 32, .fps = 5});
  if (!made) throw std::runtime_error(made.error().message());
  for (const char* name : kNames) {
    std::filesystem::create_directories(scratch_ / ("runtime-" + std::string(name)));
    std::filesystem::permissions(scratch_ / ("runtime-" + std::string(name)), std::filesystem::perms::owner_all);
  }
  if (lab.has_links()) lab.set_all(narrow());
}

LabJob::Words LabJob::words(const std::string& root, const Words& overrides) const {
  Words all{"job.run_root=" + scratch_ / root, "training.steps=" + std::to_string(steps_), "metrics.every=1",
            "checkpoint.interval=5"};
  if (kind_ == Kind::sft) {
    all.insert(all.begin(), {"run", "quickstart:sft"});
    all = joined(all, {"training.global_batch_size=8", "training.micro_batch_size=4", "eval.every=0",
                       "eval.open_loop.at_end=false", "data.sets[0].path=" + scratch_ / "data"});
  } else {
    all.insert(all.begin(), {"run", "rl_cartpole_ppo"});
    all = joined(
        all, {"rollout.steps=32", "training.global_batch_size=64", "training.micro_batch_size=64", "eval.episodes=4"});
  }
  return joined(all, overrides);
}

StartOptions LabJob::options(std::size_t machine) const {
  return {.environment = {{"XDG_RUNTIME_DIR", scratch_ / ("runtime-" + std::string(kNames[machine]))}},
          .cwd = scratch_.path()};
}

void LabJob::start(const Words& overrides) {
  overrides_ = overrides;
  const std::string pool = kind_ == Kind::sft ? "decoder" : "env";
  const Words placed{"cluster.num_nodes=3",
                     "cluster.component_placement.learner={node_group: node, placement: \"0:0-1\"}",
                     "cluster.component_placement.checkpointer={node_group: node, placement: \"0\"}",
                     "cluster.component_placement." + pool + "={node_group: node, placement: \"1:0,2:1\"}"};
  Words all = joined({binary()}, words("runs", joined(placed, overrides)));
  if (kind_ == Kind::rl) all.push_back("cluster.component_placement.rollout={node_group: node, placement: \"0\"}");
  all = joined(all, {"--listen", lab.address(0) + ":" + std::to_string(kControllerPort), "--token-file", token()});
  job = lab.start(0, all, fresh_log("job"), options(0));
  if (!job->wait_output("further nodes join with")) throw std::runtime_error("no invitation\n" + job->output());
  for (const std::size_t machine : {1u, 2u}) nodes[machine] = node(machine);
  for (const std::size_t machine : {1u, 2u}) {
    if (!nodes[machine]->wait_output("joined as node/")) throw std::runtime_error("a node did not join\n" + said());
  }
}

std::unique_ptr<JobProcess> LabJob::node(std::size_t machine, const std::string& name, const std::string& token_file) {
  const std::string own = name.empty() ? kNames[machine] : name;
  return lab.start(machine,
                   {binary(), "node", "--token-file", token_file.empty() ? token() : token_file, "--name", own},
                   fresh_log("node-" + own), options(machine));
}

std::string LabJob::node_name(std::size_t machine) const {
  const std::string text = nodes[machine]->output(), joined = "joined as ";
  const auto at = text.find(joined) + joined.size();
  return text.substr(at, text.find(' ', at) - at);
}

std::unique_ptr<JobProcess> LabJob::tool(const Words& words) {
  return lab.start(0, joined({binary()}, words), fresh_log("tool"), options(0));
}

std::string LabJob::step_line(int step) const {
  return (kind_ == Kind::sft ? "step +" : "iteration +") + std::to_string(step) + "/";
}

std::string LabJob::run_directory() const {
  std::error_code absent;  // the run may not have made it yet
  return std::filesystem::canonical(scratch_ / "runs/latest", absent).string();
}

std::map<std::string, std::string> LabJob::weights(const std::string& run) {
  const std::string out = scratch_ / ("weights-" + std::to_string(++logs_));
  auto exported = tool({"export", run, "--out", out});
  EXPECT_EQ(exported->wait(60s), 0) << exported->output();
  auto files = files_of(out, ".safetensors");
  EXPECT_FALSE(files.empty());
  return files;
}

std::string LabJob::said() const {
  std::string all = job ? "--- the job\n" + job->output() : std::string();
  for (const auto& node : nodes) {
    if (node) all += "--- a node\n" + node->output();
  }
  return all;
}

void LabJob::expect_complete() {
  ASSERT_EQ(job->wait(kDeadline), 0) << said();
  EXPECT_THAT(job->output(), ::testing::HasSubstr("RUN COMPLETE"));
  if (lab.has_links()) lab.set_all({});
  for (const auto& node : nodes) {
    if (node) {
      EXPECT_EQ(node->wait(30s), 0) << node->output();
    }
  }
  auto verify = tool({"verify", run_directory()});
  EXPECT_EQ(verify->wait(60s), 0) << verify->output();
  EXPECT_THAT(verify->output(), ::testing::HasSubstr("lost 0  doubled 0"));
  verify.reset();
  expect_nothing_left();

  const auto struck = weights(run_directory());
  auto undisturbed = tool(words("undisturbed", overrides_));
  ASSERT_EQ(undisturbed->wait(kDeadline), 0) << undisturbed->output();
  EXPECT_EQ(struck, weights(scratch_ / "undisturbed/latest"));
}

void LabJob::expect_nothing_left() const {
  EXPECT_THAT(lab.leftovers(), ::testing::IsEmpty());
  for (const char* name : kNames) {
    std::vector<std::string> left;
    const std::string runtime = scratch_ / ("runtime-" + std::string(name));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(runtime)) {
      if (entry.path() != runtime + "/troupe") left.push_back(entry.path());
    }
    EXPECT_THAT(left, ::testing::IsEmpty()) << name;
  }
}

}  // namespace troupe::testing

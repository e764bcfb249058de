#include "tests/lab/lab_job.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/support/folder_files.h"

namespace troupe::testing {

namespace {

constexpr std::array<const char*, 3> kNames{"a", "b", "c"};
constexpr int kControllerPort = 7710;
constexpr int kStepsWithoutLinks = 4;  // times as many, where no narrow link makes a job last

std::string binary() {
  const char* path = std::getenv("TROUPE_BINARY");
  if (!path) throw std::runtime_error("TROUPE_BINARY does not name the program; run the test through ctest");
  return path;
}

std::string made_folder(const std::string& path) {
  std::filesystem::create_directories(path);
  return path;
}

/// A line for each step is more than anybody reads; the last ones say how far it came.
std::string without_progress(const std::string& text) {
  std::istringstream lines(text);
  std::string kept, progress;
  for (std::string line; std::getline(lines, line);) {
    const bool is_step = line.find("] step ") != std::string::npos || line.find("] iteration ") != std::string::npos;
    if (is_step) progress = line + "\n";
    if (is_step || line.find(" smp/s (") != std::string::npos) continue;
    kept += progress + line + "\n";
    progress.clear();
  }
  return kept + progress;
}

LabJob::Words joined(LabJob::Words words, const LabJob::Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

LabJob::LabJob(Options wanted) : options(std::move(wanted)), lab(lab_options()) {
  const auto made = write_toy_dataset(scratch_ / "data", {.episodes = 40, .frames = 32, .fps = 5});
  if (!made) throw std::runtime_error(made.error().message());
  for (std::size_t machine = 0; machine < lab.size(); ++machine)
    std::filesystem::permissions(made_folder(runtime(machine)), std::filesystem::perms::owner_all);
  if (lab.has_links()) lab.set_all(options.links);
}

LabOptions LabJob::lab_options() {
  const std::string runs = made_folder(scratch_ / "runs");
  if (options.run_root_mib > 0) {
    runs_.emplace(runs, std::to_string(options.run_root_mib) + "m");
    if (runs_->error() != 0)
      throw std::runtime_error(runs + " cannot be given a size: " + std::strerror(runs_->error()));
  }
  return {.names = {kNames.begin(), kNames.end()}, .seed = options.seed, .hidden = {runs}, .preload = options.preload};
}

LabJob::Words LabJob::words(const std::string& root, const Words& overrides) const {
  const int steps = lab.has_links() ? options.steps : kStepsWithoutLinks * options.steps;
  Words all{"job.run_root=" + scratch_ / root, "training.steps=" + std::to_string(steps), "metrics.every=1",
            "checkpoint.interval=5", "cluster.component_placement.learner={node_group: node, placement: \"0:0-1\"}"};
  if (options.kind == Kind::sft) {
    all.insert(all.begin(), {"run", "quickstart:sft"});
    all = joined(all, {"training.global_batch_size=8", "training.micro_batch_size=4", "eval.every=0",
                       "eval.open_loop.at_end=false", "data.sets[0].path=" + scratch_ / "data"});
  } else {
    all.insert(all.begin(), {"run", "rl_cartpole_ppo"});
    all = joined(all, {"rollout.steps=32", "training.global_batch_size=128", "training.micro_batch_size=64",
                       "eval.episodes=4", "algorithm.deterministic=true"});
  }
  return joined(all, overrides);
}

std::string LabJob::runtime(std::size_t machine) const {
  return scratch_ / ("runtime-" + std::string(kNames[machine]));
}

StartOptions LabJob::start_options(std::size_t machine) const {
  StartOptions own{.environment = environment, .cwd = scratch_.path()};
  for (auto& [name, value] : own.environment) {
    if (const auto at = value.find("%m"); at != std::string::npos) value.replace(at, 2, kNames[machine]);
  }
  own.environment["XDG_RUNTIME_DIR"] = runtime(machine);
  return own;
}

void LabJob::clear_runtime(std::size_t machine) const { std::filesystem::remove_all(runtime(machine) + "/troupe"); }

void LabJob::start(const Words& overrides) {
  start_controller(overrides);
  start_nodes();
}

void LabJob::start_controller(const Words& overrides) {
  overrides_ = overrides;
  const std::string pool = options.kind == Kind::sft ? "decoder" : "env";
  const Words placed{"cluster.num_nodes=3",
                     "cluster.component_placement.checkpointer={node_group: node, placement: \"0\"}",
                     "cluster.component_placement." + pool + "={node_group: node, placement: \"1:0,2:1\"}"};
  Words all = joined({binary()}, words("runs", joined(placed, overrides)));
  if (options.kind == Kind::rl)
    all.push_back("cluster.component_placement.rollout={node_group: node, placement: \"0\"}");
  all = joined(all, {"--listen", controller(), "--token-file", token()});
  std::filesystem::remove(token());
  StartOptions own = start_options(0);
  own.output = output, own.terminal = terminal;
  job = lab.start(0, all, fresh_log("job"), own);
  if (!job->wait_until([this] { return std::filesystem::exists(token()); }, 60s))
    throw std::runtime_error("no invitation\n" + job->output());
}

std::string LabJob::controller() const {
  // Loopback addresses are the same ones for tests that run at the same time.
  const int port = lab.has_links() ? kControllerPort : 20'000 + ::getpid() % 20'000;
  return lab.address(0) + ":" + std::to_string(port);
}

void LabJob::start_nodes() {
  for (const std::size_t machine : {1u, 2u}) nodes[machine] = node(machine);
  for (const std::size_t machine : {1u, 2u}) {
    if (!nodes[machine]->wait_output("joined as node/")) throw std::runtime_error("a node did not join\n" + said());
  }
}

void LabJob::start_with_keys(const Words& overrides) {
  for (const std::size_t machine : {1u, 2u}) {
    auto made = tool({"keygen", kNames[machine], "--role", "node", "--out", made_folder(scratch_ / "keys")});
    if (made->wait(20s) != 0) throw std::runtime_error(made->output());
    const std::string text = made->output(), before_line = "lets it in:\n";
    allowed_[machine] = text.substr(text.find(before_line) + before_line.size());
  }
  write_allow_list();
  Words all = overrides;
  all.push_back("cluster.allow=" + scratch_ / "allow");
  start_controller(all);
  std::filesystem::copy_file(run_directory() + "/keys/controller.pub", scratch_ / "keys/controller.pub");
  start_nodes();
  overrides_ = overrides;
}

void LabJob::write_allow_list() const {
  const std::string path = scratch_ / "allow", fresh = path + ".new";
  std::ofstream out(fresh);
  for (const auto& [machine, line] : allowed_) out << line;
  out.close();
  std::filesystem::permissions(fresh, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::rename(fresh, path);
}

void LabJob::remove_key(std::size_t machine) {
  allowed_.erase(machine);
  write_allow_list();
}

std::unique_ptr<JobProcess> LabJob::node(std::size_t machine, const std::string& name) {
  const std::string own = name.empty() ? kNames[machine] : name;
  Words all{binary(), "node", "--controller", controller(), "--name", own};
  if (allowed_.empty()) {
    all = joined(all, {"--token-file", token()});
  } else {
    all = joined(all, {"--key", scratch_ / ("keys/" + own + ".key")});
  }
  return lab.start(machine, all, fresh_log("node-" + own), start_options(machine));
}

std::string LabJob::node_name(std::size_t machine) const {
  const std::string text = nodes[machine]->output(), joined = "joined as ";
  const auto at = text.find(joined) + joined.size();
  return text.substr(at, text.find(' ', at) - at);
}

std::unique_ptr<JobProcess> LabJob::tool(const Words& words) {
  return lab.start(0, joined({binary()}, words), fresh_log("tool"), start_options(0));
}

std::string LabJob::step_line(int step) const {
  return (options.kind == Kind::sft ? "step +" : "iteration +") + std::to_string(step) + "/";
}

std::string LabJob::run_directory() const {
  std::error_code absent;  // the run may not have made it yet
  return std::filesystem::canonical(scratch_ / "runs/latest", absent).string();
}

std::map<std::string, std::string> LabJob::weights(const std::string& run) {
  const std::string out = scratch_ / ("weights-" + std::to_string(++logs_));
  auto exported = tool({"export", run, "--out", out});
  if (exported->wait(60s) != 0) throw std::runtime_error("no weights\n" + exported->output());
  return files_of(out, ".safetensors");
}

std::string LabJob::said() const {
  std::string all = job ? "--- the job\n" + without_progress(job->output()) : std::string();
  for (const auto& node : nodes) {
    if (node) all += "--- a node\n" + node->output();
  }
  return all;
}

std::vector<std::string> LabJob::complaints_at_end(int exit_code) {
  if (lab.has_links()) lab.set_all({});
  std::vector<std::string> wrong;
  const auto code = job->wait(kDeadline);
  if (code != exit_code)
    return {"the job ended with " + (code ? std::to_string(*code) : "nothing") + ", not " + std::to_string(exit_code) +
            "\n" + said()};
  for (const auto& node : nodes) {
    if (!node) continue;
    const auto ended = node->wait(30s);
    if (ended != 0) wrong.push_back("a node ended with " + (ended ? std::to_string(*ended) : "nothing\n" + said()));
  }
  auto verify = tool({"verify", run_directory()});
  if (verify->wait(60s) != 0 || verify->output().find("lost 0  doubled 0") == std::string::npos)
    wrong.push_back("verify: " + verify->output());
  verify.reset();
  for (const std::string& left : leftovers()) wrong.push_back("left: " + left);
  return wrong;
}

std::vector<std::string> LabJob::complaints_at_completion() {
  auto wrong = complaints_at_end(0);
  if (!wrong.empty()) return wrong;
  if (job->output().find("RUN COMPLETE") == std::string::npos) return {"the job is not complete\n" + said()};
  auto undisturbed = tool(words("undisturbed", overrides_));
  if (undisturbed->wait(kDeadline) != 0) return {"the undisturbed job failed\n" + undisturbed->output()};
  const auto struck = weights(run_directory());
  if (struck.empty() || struck != weights(scratch_ / "undisturbed/latest"))
    return {"the weights differ from those of an undisturbed job\n" + said()};
  return {};
}

std::vector<std::string> LabJob::leftovers() const {
  std::vector<std::string> left = lab.leftovers();
  for (std::size_t machine = 0; machine < lab.size(); ++machine) {
    for (const std::string& folder : {runtime(machine), runtime(machine) + "/troupe"}) {
      std::error_code absent;  // programs make their folder when they need it
      for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
        if (entry.path().filename() != "troupe") left.push_back(entry.path());
      }
    }
  }
  return left;
}

}  // namespace troupe::testing

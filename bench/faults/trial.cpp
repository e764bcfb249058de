#include "bench/faults/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace troupe::bench {

namespace {

constexpr std::chrono::milliseconds kPoll{50};  // looking for processes costs as much as a decoder otherwise

using testing::JobProcess;
using testing::LabJob;

LabJob::Options options_of(const TrialSetup& setup) {
  LabJob::Options options{.kind = setup.kind, .steps = 1'000'000, .seed = setup.seed};
  options.links.bytes_per_second = 2'000'000;
  options.run_root_mib = 400;
  options.preload = LAB_PRELOAD;
  return options;
}

ClockAndDisk* map_control(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.is_open() || ::ftruncate(file.get(), sizeof(ClockAndDisk)) != 0)
    throw std::runtime_error(path + " cannot be made");
  void* memory = ::mmap(nullptr, sizeof(ClockAndDisk), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) throw std::runtime_error(path + " cannot be mapped");
  return static_cast<ClockAndDisk*>(memory);
}

}  // namespace

Trial::Trial(const TrialSetup& setup) : job(options_of(setup)), setup_(setup) {
  for (std::size_t machine = 0; machine < job.lab.size(); ++machine)
    controls_[machine] = map_control(job.folder() + "/control-" + std::string(1, static_cast<char>('a' + machine)));
  job.environment["TROUPE_LAB_CONTROL"] = job.folder() + "/control-%m";
  if (!setup.fault_point.empty()) job.environment["TROUPE_FAULT"] = setup.fault_point;
  int ends[2] = {-1, -1};
  if (setup.output == TrialSetup::Output::unread_pipe) {
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
  } else if (setup.output == TrialSetup::Output::terminal) {
    if (::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) != 0) throw std::runtime_error("no terminal");
    for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    job.terminal = true;
  }
  reader.reset(ends[0]);
  writer_.reset(ends[1]);
  job.output = writer_.get();
  start({});
  writer_.reset();
  job.output = -1;
  job.terminal = false;
}

void Trial::start(const LabJob::Words& more) {
  LabJob::Words words{"cluster.restart.budget=1000", "cluster.restart.component_budget=10000",
                      "cluster.restart.backoff_initial_s=0.1", "cluster.restart.backoff_max_s=0.5"};
  const std::string deadline = "=" + std::to_string(kActorDeadline_s);
  words.push_back((setup_.kind == LabJob::Kind::sft ? "data.decode_deadline_s" : "env.step_timeout_s") + deadline);
  for (const char* key : {"training.step_timeout_s", "checkpoint.timeout_s"}) words.push_back(key + deadline);
  words.insert(words.end(), more.begin(), more.end());
  joins_before_ = joins_less_losses();
  job.start(words);
}

void Trial::last(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::int64_t Trial::steps() const {
  std::ifstream in(job.run_directory() + "/metrics.jsonl");
  return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
}

std::map<std::string, pid_t> Trial::hosts() const {
  auto all = job.job->hosts();
  for (const auto& node : job.nodes) {
    if (node) all.merge(node->hosts());
  }
  return all;
}

std::optional<pid_t> Trial::process(const std::string& actor) const { return JobProcess::newest(hosts(), actor); }

bool Trial::pool_is_complete() const { return process(job.actor(0)) && process(job.actor(1)); }

bool Trial::nodes_run() const {
  return std::all_of(job.nodes.begin() + 1, job.nodes.end(),
                     [](const auto& node) { return node && !node->wait(std::chrono::milliseconds(0)); });
}

std::int64_t Trial::joins_less_losses() const {
  std::ifstream in(job.run_directory() + "/events.jsonl");
  std::int64_t count = 0;
  for (std::string line; std::getline(in, line);) {
    count += line.find("\"kind\":\"node_joined\"") != std::string::npos;
    count -= line.find("\"kind\":\"node_lost\"") != std::string::npos;
  }
  return count;
}

bool Trial::nodes_are_in() const { return joins_less_losses() - joins_before_ >= std::ssize(job.nodes) - 1; }

std::int64_t Trial::committed_step() const {
  std::error_code absent;
  const std::string name =
      std::filesystem::read_symlink(job.run_directory() + "/checkpoints/latest", absent).filename().string();
  return name.starts_with("step_") ? std::stoll(name.substr(5)) : 0;
}

void Trial::wait(const std::string& what, double deadline, const std::function<bool()>& good) {
  const Time begin = now();
  while (!good()) {
    if (seconds_since(begin) > deadline) throw Hang(fmt::format("not within {} s: {}", deadline, what));
    if (const auto code = job.job->wait(kPoll); code && !good())
      throw NotRecovered("the job ended with " + std::to_string(*code) + " before " + what);
  }
}

void Trial::wait_steps(std::int64_t count, double deadline) {
  const std::int64_t wanted = steps() + count;
  wait(std::to_string(count) + " further steps", deadline, [&] { return steps() >= wanted; });
}

void Trial::wait_whole(double deadline) {
  const Time begin = now();
  wait("all nodes and both actors of the pool", deadline,
       [&] { return nodes_run() && nodes_are_in() && pool_is_complete(); });
  wait_steps(1, deadline - seconds_since(begin));
}

void Trial::resume() {
  job.environment.erase("TROUPE_FAULT");
  job.job->kill(SIGKILL);
  job.job->wait(std::chrono::seconds(10));
  for (std::size_t machine = 1; machine < job.nodes.size(); ++machine) {
    auto& node = job.nodes[machine];
    if (!node) continue;
    node->kill(SIGTERM);
    if (!node->wait(std::chrono::seconds(15))) throw Hang("a node does not end on SIGTERM");
    node.reset();
  }
  start({"--resume", "auto"});
}

std::vector<std::string> Trial::end() {
  job.job->kill(SIGINT);
  if (!job.job->wait(LabJob::kDeadline)) throw Hang("the job does not end at SIGINT");
  return job.complaints_at_end(130);
}

}  // namespace troupe::bench

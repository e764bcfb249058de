// Environments in Python through the bridge: tests/python/toy_envs.py in workers that the pool starts.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "env/env_pool.h"
#include "env/single_env.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/visible.h"
#include "workers/bridge/bridge_factory.h"
#include "workers/bridge/worker_pool.h"
#include "workers/bridge/worker_process.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kLine = "python:toy_envs:Line";

EnvOptions in_tests(NamedOptions options = {}) {
  const std::string root = TROUPE_SOURCE_DIR;
  EnvOptions all{.options = std::move(options), .step_timeout = Seconds(20)};
  all.bridge.python = "python3";
  all.bridge.path = {root + "/tests/python", root + "/.deps/clients"};
  return all;
}

std::shared_ptr<const EnvFactory> factory_of(const std::string& id, const EnvOptions& options) {
  auto factory = make_bridge_factory(id, options);
  EXPECT_TRUE(factory) << factory.error().message();
  return *factory;
}

/// A pool that is stepped with the same action everywhere.
class BridgePool {
 public:
  BridgePool(const std::shared_ptr<const EnvFactory>& factory, EnvPool::Options options) : factory_(factory) {
    auto pool = EnvPool::make(factory, options);
    EXPECT_TRUE(pool) << pool.error().message();
    pool_ = std::move(*pool);
  }
  EnvPool& operator*() { return *pool_; }
  EnvPool* operator->() { return pool_.get(); }

  void reset() {
    for (std::int64_t g = 0; g < pool_->groups(); ++g) EXPECT_TRUE(pool_->reset(g));
    receive();
  }
  void step(float action) {
    const std::vector<float> actions(static_cast<std::size_t>(pool_->rows() * factory_->spec().action.size), action);
    for (std::int64_t g = 0; g < pool_->groups(); ++g) EXPECT_TRUE(pool_->send(g, actions));
    receive();
  }
  /// Of every row in the order of the environments.
  std::vector<float> field(std::size_t index) const {
    std::vector<float> all;
    for (const auto& block : blocks_) {
      const auto* values = block.view().at<float>(block.view().layout->observation[index]);
      all.insert(all.end(), values, values + pool_->rows() * factory_->spec().observation[index].numel());
    }
    return all;
  }
  template <class Get>
  std::vector<int> rows(const Get& get) const {
    std::vector<int> all;
    for (const auto& block : blocks_) {
      const auto values = get(block.view());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  std::vector<int> lost() const {
    return rows([](const BlockView& view) { return view.lost(); });
  }
  /// All bytes of all blocks.
  std::vector<std::vector<std::byte>> memory() const {
    std::vector<std::vector<std::byte>> all;
    for (const auto& block : blocks_) {
      const auto size = static_cast<std::size_t>(block.view().layout->bytes);
      all.emplace_back(block.view().memory, block.view().memory + size);
    }
    return all;
  }
  std::vector<float> rewards() const {
    std::vector<float> all;
    for (const auto& block : blocks_) all.insert(all.end(), block.view().reward().begin(), block.view().reward().end());
    return all;
  }

 private:
  void receive() {
    blocks_.clear();
    for (std::int64_t g = 0; g < pool_->groups(); ++g) {
      auto block = pool_->recv(g, 80s);
      ASSERT_TRUE(block) << block.error().message();
      blocks_.push_back(std::move(*block));
    }
  }
  std::shared_ptr<const EnvFactory> factory_;
  std::unique_ptr<EnvPool> pool_;
  std::vector<EnvPool::Block> blocks_;
};

/// Waits until the process has ended; how it ended.
std::optional<WorkerProcess::End> end_of(WorkerProcess& process) {
  pollfd ended{process.ended(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 60'000), 1);
  return process.poll_end();
}

WorkerCommand shell(const std::string& script) { return {.words = {"sh", "-c", script}, .variables = {}}; }

TEST(WorkerProcessTest, AnEndSaysItsSignalOrCodeAndTheLastLine) {
  auto killed = WorkerProcess::start(shell("echo first >&2; echo last words >&2; kill -9 $$"), {}, true);
  ASSERT_TRUE(killed);
  EXPECT_EQ(end_of(*killed)->why, "sh was ended by signal 9: last words");
  auto failed = WorkerProcess::start(shell("exit 3"), {}, true);
  ASSERT_TRUE(failed);
  EXPECT_EQ(end_of(*failed)->why, "sh ended with code 3: it said nothing");
}

TEST(WorkerProcessTest, WhatAProcessLeavesBehindEndsWithIt) {
  auto process = WorkerProcess::start(shell("sleep 600 & exit 0"), {}, true);
  ASSERT_TRUE(process);
  EXPECT_EQ(end_of(*process)->why, "");
  // poll_end has seen the stream's end where the child was gone by then
  if (pollfd held{process->out(), POLLIN, 0}; held.fd != -1) {
    EXPECT_EQ(::poll(&held, 1, 60'000), 1) << "a child holds the stream";
    process->take_output();
  }
  EXPECT_EQ(process->out(), -1);
}

TEST(WorkerProcessTest, OneThatCannotBeWatchedIsEndedBeforeTheError) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  // the ends of two pipes, and no descriptor more
  int free = 0;
  for (few.rlim_cur = 0; free < 4; ++few.rlim_cur) free += ::fcntl(static_cast<int>(few.rlim_cur), F_GETFD) < 0 ? 1 : 0;
  ::setrlimit(RLIMIT_NOFILE, &few);
  const auto process = WorkerProcess::start(shell("exec sleep 600"), {}, true);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error().message(), HasSubstr("cannot be started: Too many open files"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(WorkerPoolTest, AWorkerThatDoesNotComeInTimeIsEndedAndSaidWithItsLastLine) {
  auto pool = WorkerPool::start({.spec = {},
                                 .options = "{}",
                                 .command = shell("echo stuck in an import >&2; exec sleep 600"),
                                 .bridge = {},
                                 .max_message_bytes = 1 << 20,
                                 .start_patience = 1s});
  ASSERT_TRUE(pool) << pool.error().message();
  const auto lease = (*pool)->hub().lease(1, 60s);
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().message(), "it did not come within 1 s: stuck in an import");
}

TEST(BridgeEnvTest, AnEnvironmentDescribesItselfByWhatPythonMakes) {
  const EnvSpec spec = factory_of("python:toy_envs:Everything", in_tests({{"colour", "9"}}))->spec();
  std::vector<std::string> names;
  for (const EnvField& field : spec.observation) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("arm.joints", "bytes", "mode", "rgb.camera", "rgb.channels_first"));
  EXPECT_EQ(spec.observation[3].dtype, EnvDType::u8);
  EXPECT_THAT(spec.observation[4].shape, ElementsAre(32, 20, 3));
  EXPECT_EQ(spec.action.choices, 4);
  EXPECT_THAT(spec.cameras, ElementsAre("render"));
  EXPECT_EQ(factory_of(kLine, in_tests())->spec().max_steps, 20);
}

TEST(BridgeEnvTest, WhatIsMissingIsOneSentenceBeforeAnythingBegins) {
  const auto why = [](const std::string& id, const EnvOptions& options) {
    return make_bridge_factory(id, options).error().message();
  };
  EXPECT_THAT(why("gymnasium:no_such_module:Nothing-v0", in_tests()),
              AllOf(HasSubstr("needs the Python package"), HasSubstr("-m pip install ")));
  EXPECT_THAT(why("python:toy_envs:Lime", in_tests()), HasSubstr("has no 'Lime'"));
  EXPECT_THAT(why(kLine, in_tests({{"speed", "1"}})), HasSubstr("speed"));
  EnvOptions options = in_tests();
  options.bridge.python = "/no/python3";
  EXPECT_EQ(why(kLine, options),
            "/no/python3 cannot be started: No such file or directory; env.bridge.python names the interpreter");
  options.bridge.command = {"env", "python3"};
  EXPECT_THAT(why(kLine, options), HasSubstr("remove one"));
  options = in_tests();
  options.profile = "pixel";
  EXPECT_THAT(why(kLine, options), HasSubstr("has no profiles"));
}

TEST(BridgeEnvTest, TheSameSeedsGiveTheSameBitsOverAnyNumberOfWorkers) {
  EnvOptions two = in_tests();
  two.bridge.workers = 2;
  BridgePool alone(factory_of(kLine, in_tests()), {.num_envs = 4, .seed = 3});
  BridgePool shared(factory_of(kLine, two), {.num_envs = 4, .groups = 2, .seed = 3, .threads = 2});
  alone.reset();
  shared.reset();
  for (int step = 0; step < 25; ++step) {  // beyond the end of the first episodes
    EXPECT_EQ(alone.field(0), shared.field(0)) << step;
    EXPECT_EQ(alone.rewards(), shared.rewards());
    alone.step(0.3F);
    shared.step(0.3F);
  }
  EXPECT_EQ(alone->counters().lost + shared->counters().lost, 0);
}

/// Memory of workers that this process has mapped.
std::ptrdiff_t shared_memories() {
  std::ifstream maps("/proc/self/maps");
  std::ptrdiff_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("/memfd:troupe:lease") != std::string::npos;
  return count;
}

std::ptrdiff_t files_in(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

TEST(BridgeEnvTest, MemoryAndMessagesGiveTheSameBlocks) {
  EnvOptions apart = in_tests();
  apart.bridge.shared_memory = false;
  const char* const id = "python:toy_envs:Everything";
  BridgePool messages(factory_of(id, apart), {.num_envs = 3, .seed = 3});
  EXPECT_EQ(shared_memories(), 0);
  BridgePool memory(factory_of(id, in_tests()), {.num_envs = 3, .seed = 3});
  EXPECT_EQ(shared_memories(), 1);
  messages.reset();
  memory.reset();
  for (int step = 0; step < 7; ++step) {
    EXPECT_EQ(messages.memory(), memory.memory()) << step;
    messages.step(static_cast<float>(step % 4));
    memory.step(static_cast<float>(step % 4));
  }
  EXPECT_EQ(messages->counters().resets, memory->counters().resets);
}

TEST(BridgeEnvTest, AKilledWorkerLeavesNoMemoryBehind) {
  const ScratchFolder folder;
  const std::string once = folder / "once";
  std::ofstream(once).put('x');
  const auto files = files_in("/dev/shm");
  {
    BridgePool pool(factory_of(kLine, in_tests({{"fault", "kill"}, {"once", once}})), {.num_envs = 2});
    pool.reset();
    for (int step = 0; step < 5; ++step) pool.step(0);
    EXPECT_FALSE(std::filesystem::exists(once)) << "no worker was killed";
    EXPECT_EQ(shared_memories(), 1) << "its successor's";
    EXPECT_EQ(files_in("/dev/shm"), files);
  }
  EXPECT_EQ(shared_memories(), 0);
}

TEST(BridgeEnvTest, AWorkerThatSharesNoMemoryIsServedByMessages) {
  EnvOptions options = in_tests();
  // a Python of a system without memfd
  options.bridge.command = {"python3", "-c",
                            "import os, runpy, sys; del os.memfd_create; "
                            "runpy.run_module('troupe_env', run_name='__main__', alter_sys=True)"};
  options.bridge.python.clear();
  options.known = factory_of(kLine, in_tests())->spec();
  BridgePool pool(factory_of(kLine, options), {.num_envs = 2});
  EXPECT_EQ(shared_memories(), 0);
  pool.reset();
  pool.step(0);
  EXPECT_THAT(pool.lost(), Each(0));
}

TEST(BridgeEnvTest, ItsOwnExpertAdvisesWhereItHasOne) {
  auto line = SingleEnv::make(factory_of(kLine, in_tests()));
  ASSERT_TRUE(line) << line.error().message();
  ASSERT_TRUE(line->begin(5));
  float action = 0, position = 0;
  std::memcpy(&position, line->field(0).data(), sizeof position);
  ASSERT_TRUE(line->advise({&action, 1}));
  EXPECT_EQ(action, -5 * position);
  auto wild = SingleEnv::make(factory_of("python:toy_envs:Wild", in_tests()));
  ASSERT_TRUE(wild->begin(5));
  const auto none = wild->advise({&action, 1});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Errc::not_found);
  EXPECT_THAT(none.error().message(), HasSubstr("python:toy_envs:Wild has no expert to record"));
}

TEST(BridgeEnvTest, AnEnvironmentThatCutsItsEpisodeIsTruncated) {
  BridgePool pool(factory_of("python:toy_envs:Everything", in_tests()), {.num_envs = 2});
  pool.reset();
  pool.step(3);
  EXPECT_THAT(pool.rewards(), Each(2));  // choices begin at -1
  pool.step(0);
  EXPECT_THAT(pool.rows([](const BlockView& view) { return view.truncated(); }), Each(0));
  pool.step(0);
  EXPECT_THAT(pool.rows([](const BlockView& view) { return view.truncated(); }), Each(1));
  EXPECT_THAT(pool.rows([](const BlockView& view) { return view.terminated(); }), Each(0));
  EXPECT_THAT(pool.rows([](const BlockView& view) { return view.episode(); }), Each(1));
  std::vector<std::uint8_t> rgb(2 * 2 * 3);
  pool.step(0);
  ASSERT_TRUE(pool->render(1, "render", {.width = 2, .height = 2, .rgb = rgb}));
  EXPECT_THAT(rgb, Each(1));
  EXPECT_EQ(pool->render(1, "front", {.width = 2, .height = 2, .rgb = rgb}).error().code(), Errc::not_found);
}

TEST(BridgeEnvTest, AgentsOfAParallelEnvironmentAreRowsOfTheirEnvironment) {
  const auto factory = factory_of("pettingzoo:toy_team", in_tests());
  EXPECT_EQ(factory->spec().agents, 3);
  BridgePool pool(factory, {.num_envs = 2, .seed = 4});
  pool.reset();
  EXPECT_EQ(pool->rows(), 6);
  const std::vector<float> begun = pool.field(0);
  pool.step(0.25F);
  for (std::size_t row = 0; row < 6; ++row) {
    EXPECT_NEAR(pool.field(0)[2 * row], begun[2 * row] + 0.25F, 1e-6);
    EXPECT_NEAR(pool.rewards()[row], begun[2 * row] + 0.25F, 1e-6);
  }
  const auto alive = [&] { return pool.rows([](const BlockView& view) { return view.alive(); }); };
  const auto done = [&] { return pool.rows([](const BlockView& view) { return view.done(); }); };
  EXPECT_THAT(alive(), Each(1));
  std::int64_t deaths = 0;
  for (int step = 0; step < 5 && done() == std::vector<int>(6, 0); ++step) {
    pool.step(0.25F);
    deaths += std::ranges::count(alive(), 0);
  }
  EXPECT_GT(deaths, 0) << "they begin at different places";
  EXPECT_THAT(pool.lost(), Each(0)) << "no action of one that has left reaches the environment";
}

/// One fault, in the first environment that reaches step 3.
class BridgeFaultTest : public ::testing::TestWithParam<const char*> {
 protected:
  EnvOptions options() {
    const std::string once = folder_ / "once";
    std::ofstream(once).put('x');
    EnvOptions options = in_tests({{"fault", GetParam()}, {"at", "3"}, {"once", once}});
    options.step_timeout = Seconds(GetParam() == std::string("hang") ? 4 : 60);
    return options;
  }
  ScratchFolder folder_;
};

TEST_P(BridgeFaultTest, CostsRowsAndNotTheRun) {
  BridgePool pool(factory_of(kLine, options()), {.num_envs = 3});
  const std::string fault = GetParam();
  pool.reset();
  pool.step(0);
  pool.step(0);
  pool.step(0);
  if (fault == "raise") {
    EXPECT_THAT(pool.lost(), ElementsAre(1, 0, 0));
    EXPECT_THAT(pool->why_lost(0), HasSubstr("ValueError: the line broke"));
  } else {
    EXPECT_THAT(pool.lost(), Each(1));
    EXPECT_THAT(pool->why_lost(1),
                HasSubstr(fault == "kill" ? "was ended by signal 9" : "gave no answer to STEP in 2.0 s"));
  }
  const std::int64_t lost = pool->counters().lost;
  for (int step = 0; step < 30; ++step) pool.step(0.1F);
  EXPECT_EQ(pool->counters().lost, lost);
}
INSTANTIATE_TEST_SUITE_P(Faults, BridgeFaultTest, ::testing::Values("raise", "kill", "hang"),
                         [](const auto& one) { return std::string(one.param); });

TEST(BridgeEnvTest, WorkersThatTheUserStartsFindTheSimulator) {
  const ScratchFolder folder;
  EnvOptions options = in_tests({{"at", "7"}});
  options.bridge.bind = "ipc://" + (folder / "sim.sock");
  options.bridge.workers = 0;
  const auto worker = [&](const std::string& env) {
    auto started = WorkerProcess::start(*worker_command(options.bridge),
                                        {"--connect", options.bridge.bind, "--env", env, "--name", "mine", "--options",
                                         env == kLine ? R"({"at": 7})" : "{}"},
                                        true);
    EXPECT_TRUE(started);
    return std::move(*started);
  };
  const auto mine = worker(kLine);
  BridgePool pool(factory_of(kLine, options), {.num_envs = 2});
  pool.reset();
  pool.step(0);
  EXPECT_THAT(pool.lost(), Each(0));
  auto other = worker("python:toy_envs:Everything");
  const auto end = end_of(other);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->is_said);
  EXPECT_THAT(end->why, HasSubstr("refuses this worker: it has python:toy_envs:Everything, the simulator steps"));
  options.bridge.bind.clear();
  EXPECT_THAT(EnvPool::make(factory_of(kLine, options), {}).error().message(), HasSubstr("nobody could come"));
}

/// Episodes that toy_envs.Line began, in order, but for those of descriptions.
struct Begun {
  std::uint64_t seed = 0;
  pid_t process = 0;
};
std::vector<Begun> begun_in(const std::string& log) {
  std::vector<Begun> all;
  std::ifstream lines(log);
  for (Begun one; lines >> one.seed >> one.process;) {
    if (one.seed != 0) all.push_back(one);
  }
  return all;
}

TEST(BridgeEnvTest, WorkersComeAndGoAndNoEpisodeIsBegunTwice) {
  const ScratchFolder folder;
  const std::string log = folder / "begun";
  EnvOptions options = in_tests({{"log", log}});
  options.step_timeout = Seconds(8);
  options.bridge.bind = "ipc://" + (folder / "sim.sock");
  options.bridge.workers = 0;
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  int number = 0;
  const auto come = [&] {
    auto started =
        WorkerProcess::start(*worker_command(options.bridge),
                             {"--connect", options.bridge.bind, "--env", kLine, "--name",
                              "w" + std::to_string(number++), "--options", nlohmann::json(options.options).dump()},
                             true);
    EXPECT_TRUE(started);
    return std::make_unique<WorkerProcess>(std::move(*started));
  };
  workers.push_back(come());
  BridgePool pool(factory_of(kLine, options), {.num_envs = 8, .groups = 4, .seed = 5, .threads = 4});
  pool.reset();
  for (std::size_t step = 0; step < 1000; ++step) {
    while (step == 200 && workers.size() < 4) workers.push_back(come());
    if (step == 600) workers.resize(2);  // the others are killed
    if (step % 100 == 50) {
      if (step == 450) {
        ASSERT_EQ(::kill(begun_in(log).back().process, SIGSTOP), 0);
        workers.push_back(come());
      } else {
        auto& worker = workers[step / 100 % workers.size()];
        worker.reset();  // killed
        worker = come();
      }
    }
    pool.step(0.1F);
  }
  EXPECT_GT(pool->counters().lost, 0);
  EXPECT_GT(pool->counters().env_steps, 8 * 900);
  std::vector<std::uint64_t> seeds;
  for (const Begun& one : begun_in(log)) seeds.push_back(one.seed);
  EXPECT_GT(seeds.size(), 8U);
  std::sort(seeds.begin(), seeds.end());
  EXPECT_EQ(std::adjacent_find(seeds.begin(), seeds.end()), seeds.end()) << "an environment was leased twice";
}

TEST(BridgeEnvTest, WorkersThatNeverComeAreSaidWithTheirLastWords) {
  EnvOptions options = in_tests();
  options.known = factory_of(kLine, options)->spec();  // nobody is asked before the first worker is started
  options.options["speed"] = "1";
  const auto pool = EnvPool::make(factory_of(kLine, options), {});
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.error().message(), HasSubstr("speed"));
}

}  // namespace
}  // namespace troupe::workers

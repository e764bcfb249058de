#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/model/shard/training_harness.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

using namespace std::chrono_literals;

std::string fresh_store(const std::string& name) {
  static const ScratchFolder folder;
  return folder / name;
}

std::unique_ptr<Collective> join(const std::string& store, int rank, int world) {
  auto joined = join_gloo_group({.store_path = store, .rank = rank, .world = world, .timeout = 20s});
  if (!joined) ADD_FAILURE() << joined.error().to_string();
  return joined ? std::move(joined).value() : nullptr;
}

TEST(EngineGlooTest, GlooAndThreadRanksAreBitEqual) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    TrainingRun run{.world = 2, .micro_batches = 2, .steps = 5};
    run.options.param_dtype = dtype;
    const auto threads = train(run);
    run.join = [store = fresh_store(dtype == at::kFloat ? "f32" : "bf16")](int rank) { return join(store, rank, 2); };
    const auto gloo = train(run);
    EXPECT_EQ(gloo.losses, threads.losses);
    EXPECT_TRUE(gloo.state == threads.state);
  }
}

TEST(EngineGlooTest, ReplicasAreBitEqualOverGlooAndThreads) {
  TrainingRun run{.world = 4, .micro_batches = 2, .steps = 3};
  run.options.sharing_ranks = 2;
  const auto threads = train(run);
  run.join = [store = fresh_store("replicas")](int rank) { return join(store, rank, 4); };
  const auto gloo = train(run);
  EXPECT_EQ(gloo.losses, threads.losses);
  EXPECT_TRUE(gloo.state == threads.state);
}

/// One rank of the test below, as a child process: trains and leaves its losses, as doubles, beside the store.
TEST(EngineGlooTest, DISABLED_ChildRank) {
  const char* rank = std::getenv("TROUPE_TEST_RANK");
  const char* store = std::getenv("TROUPE_TEST_STORE");
  ASSERT_TRUE(rank && store);
  at::set_num_threads(1);
  const TrainingRun run{.world = 2, .steps = 20};
  const auto group = join(store, std::atoi(rank), 2);
  ASSERT_NE(group, nullptr);
  StartedEngine engine(*group, std::make_shared<ChainNetwork>(), run.options, 11);
  std::vector<double> losses, norms;
  train_rank(engine, run, losses, norms).value();
  std::ofstream out(std::string(store) + ".losses." + rank, std::ios::binary);
  out.write(reinterpret_cast<const char*>(losses.data()), static_cast<std::streamsize>(losses.size() * sizeof(double)));
}

pid_t spawn_rank(int rank, const std::string& store) {
  const std::string variables[] = {"TROUPE_TEST_RANK=" + std::to_string(rank), "TROUPE_TEST_STORE=" + store};
  std::vector<char*> environment;
  for (char** e = environ; *e; ++e) environment.push_back(*e);
  for (const auto& v : variables) environment.push_back(const_cast<char*>(v.c_str()));
  environment.push_back(nullptr);
  char self[] = "/proc/self/exe", filter[] = "--gtest_filter=EngineGlooTest.DISABLED_ChildRank",
       also[] = "--gtest_also_run_disabled_tests";
  char* arguments[] = {self, filter, also, nullptr};
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, self, nullptr, nullptr, arguments, environment.data()), 0);
  return pid;
}

TEST(EngineGlooTest, TwoProcessesTrainLikeOneRankThatAccumulatesTwo) {
  const auto one = train({.world = 1, .micro_batches = 2, .steps = 20});
  const auto store = fresh_store("processes");
  for (const pid_t pid : {spawn_rank(0, store), spawn_rank(1, store)}) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (const char* rank : {"0", "1"}) {
    std::vector<double> losses(20);
    std::ifstream in(store + ".losses." + rank, std::ios::binary);
    in.read(reinterpret_cast<char*>(losses.data()), 20 * sizeof(double));
    ASSERT_EQ(in.gcount(), 160);
    EXPECT_EQ(losses, one.losses) << "rank " << rank;
  }
}

}  // namespace
}  // namespace troupe::model

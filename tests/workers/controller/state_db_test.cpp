#include "workers/controller/state_db.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

struct StateDbTest : ::testing::Test {
  const ScratchFolder scratch;
  std::string folder = scratch.path();
  std::string path = folder + "/state.db";
};

TEST_F(StateDbTest, KeepsWhatWasWrittenOverAReopening) {
  {
    auto db = StateDb::open(path).value();
    EXPECT_EQ(db->next_term().value(), 1u);
    db->add_epoch({.fence = (1ull << 32) + 1, .resume_step = 0, .reason = "start"}).value();
    db->add_checkpoint({.step = 10, .fence = 1, .directory = "checkpoints/step_000010", .manifest_hash = "ab"}).value();
    db->set_job_state("RUNNING").value();
    db->set_committed_step(10).value();
    for (const std::int64_t revision : {0, 10, 9}) db->add_plan(revision, std::to_string(revision)).value();
  }
  auto db = StateDb::open(path).value();
  EXPECT_EQ(db->next_term().value(), 2u);
  EXPECT_EQ(db->epochs().value().at(0).fence, (1ull << 32) + 1);
  EXPECT_EQ(db->checkpoints().value().at(0).directory, "checkpoints/step_000010");
  EXPECT_EQ(db->committed_step().value(), 10);
  EXPECT_EQ(db->newest_plan().value()->revision, 10);
  EXPECT_EQ(db->newest_plan().value()->json, "10");
}

TEST_F(StateDbTest, IsReadWhereItLiesWhileItsControllerWrites) {
  ::setenv("TMPDIR", (folder + "/absent").c_str(), 1);  // so that no copy can be made
  auto controller = StateDb::open(path).value();
  controller->set_job_state("RUNNING").value();
  controller->set_committed_step(3).value();
  auto reader = StateDb::open_read_only(path).value();
  EXPECT_EQ(reader->committed_step().value(), 3);
  controller->set_committed_step(4).value();
  EXPECT_EQ(reader->committed_step().value(), 4);
  EXPECT_EQ(reader->job_state().value(), "RUNNING");
  ::unsetenv("TMPDIR");
}

TEST_F(StateDbTest, NamesADamagedFile) {
  std::ofstream(path) << std::string(5000, 'x');
  const auto opened = StateDb::open(path);
  EXPECT_EQ(opened.error().code(), Errc::data_loss);
  EXPECT_THAT(opened.error().message(), HasSubstr(path));
}

TEST_F(StateDbTest, CanBeReadAfterItsControllerEnded) {
  StateDb::open(path).value()->set_job_state("DONE").value();
  auto db = StateDb::open_read_only(path).value();
  EXPECT_EQ(db->job_state().value(), "DONE");
}

}  // namespace
}  // namespace troupe::workers

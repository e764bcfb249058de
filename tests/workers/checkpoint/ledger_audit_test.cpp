#include "workers/checkpoint/ledger_audit.h"

#include "tests/workers/checkpoint/fixture.h"
#include "workers/checkpoint/ledger.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kBatch = 4;

class LedgerAuditTest : public testing::CheckpointFixture {
 protected:
  std::string folder() const { return path("ledger"); }
  static std::uint64_t digest(std::int64_t position) { return static_cast<std::uint64_t>(position) + 1; }

  /// Both ranks of a world of two record a step: rank 0 the even positions, rank 1 the odd ones.
  void step(std::uint64_t fence, std::int64_t s) {
    for (std::int64_t rank : {0, 1}) record(fence, rank, s, {s * kBatch + rank, s * kBatch + 2 + rank});
  }
  void record(std::uint64_t fence, std::int64_t rank, std::int64_t s, const std::vector<std::int64_t>& positions,
              const std::vector<VoidPosition>& voids = {}, std::uint64_t salt = 0,
              const std::map<std::string, std::int64_t>& counters = {}) {
    LedgerRecord r{
        .fence = fence, .step = s, .rank = rank, .positions = positions, .voids = voids, .counters = counters};
    for (const auto p : positions) r.xxh3.push_back(digest(p) + salt);
    auto writer = LedgerWriter::open(folder(), fence, rank);
    ASSERT_TRUE(writer->append(r));
  }
  /// A step of one rank that replays: counters, and all positions.
  void replay(std::uint64_t fence, std::int64_t s, const std::map<std::string, std::int64_t>& counters) {
    record(fence, 0, s, {s * kBatch, s * kBatch + 1, s * kBatch + 2, s * kBatch + 3}, {}, 0, counters);
  }
  LedgerVerdict audit(const std::vector<LedgerEpoch>& epochs, std::int64_t steps) {
    return LedgerAudit(epochs, steps, kBatch, 10).run(folder()).value();
  }
};

TEST_F(LedgerAuditTest, CleanRunIsOk) {
  for (std::int64_t s = 0; s < 5; ++s) step(1, s);
  const LedgerVerdict v = audit({{1, 0}}, 5);
  EXPECT_TRUE(v.ok());
  EXPECT_EQ(v.expected, 20);
  EXPECT_EQ(v.trained, 20);
  EXPECT_EQ(v.passes, 2);
  EXPECT_EQ(v.records, 10);
}
TEST_F(LedgerAuditTest, RollbackGivesStepsToTheNewerEpoch) {
  for (std::int64_t s = 0; s < 5; ++s) step(1, s);  // steps 3 and 4 were lost with their epoch
  for (std::int64_t s = 3; s < 6; ++s) step(2, s);
  const LedgerVerdict v = audit({{1, 0}, {2, 3}}, 6);
  EXPECT_TRUE(v.ok());
  EXPECT_EQ(v.trained, 24);
  EXPECT_EQ(v.superseded, 8);
}
TEST_F(LedgerAuditTest, EpochThatNeverTrainedOwnsItsStepsAllTheSame) {
  for (std::int64_t s = 0; s < 4; ++s) step(1, s);
  for (std::int64_t s = 1; s < 4; ++s) step(3, s);
  // Epoch 2 resumed at 2 and died at once; epoch 3 went back to 1.
  EXPECT_TRUE(audit({{1, 0}, {2, 2}, {3, 1}}, 4).ok());
  // Had epoch 3 resumed at 3, epoch 2 would own step 2 and have nothing to show for it.
  const LedgerVerdict v = audit({{3, 3}, {2, 2}, {1, 0}}, 4);
  EXPECT_EQ(v.lost, 4);
  EXPECT_EQ(v.lost_list.at(0).step, 2);
}
TEST_F(LedgerAuditTest, OwnerIsTheLargestFenceThatResumedBefore) {
  const LedgerAudit a({{9, 4}, {1, 0}, {5, 6}}, 10, kBatch, 10);
  EXPECT_EQ(a.owner(0), 1u);
  EXPECT_EQ(a.owner(3), 1u);
  EXPECT_EQ(a.owner(4), 9u);
  EXPECT_EQ(a.owner(7), 9u);
  EXPECT_EQ(LedgerAudit({{9, 4}}, 10, kBatch, 10).owner(3), 0u);
}
TEST_F(LedgerAuditTest, LostPositionsAreListed) {
  step(1, 0);
  record(1, 0, 1, {4, 6});
  const LedgerVerdict v = audit({{1, 0}}, 2);
  EXPECT_FALSE(v.ok());
  EXPECT_EQ(v.lost, 2);
  ASSERT_EQ(v.lost_list.size(), 2u);
  EXPECT_EQ(v.lost_list[0].position, 5);
  EXPECT_EQ(v.lost_list[1].position, 7);
}
TEST_F(LedgerAuditTest, DoubledPositionsAreListed) {
  step(1, 0);
  record(1, 2, 0, {1});
  const LedgerVerdict v = audit({{1, 0}}, 1);
  EXPECT_FALSE(v.ok());
  EXPECT_EQ(v.doubled, 1);
  EXPECT_EQ(v.doubled_list.at(0).position, 1);
  EXPECT_THAT(v.doubled_list.at(0).detail, HasSubstr("rank 2"));
}
TEST_F(LedgerAuditTest, PositionTwiceInOneRecordIsDoubled) {
  record(1, 0, 0, {0, 1, 2, 3, 3});
  EXPECT_EQ(audit({{1, 0}}, 1).doubled, 1);
}
TEST_F(LedgerAuditTest, MisplacedPositionsAreListed) {
  record(1, 0, 0, {0, 1, 2, 7});
  record(1, 0, 1, {4, 5, 6, 3});
  const LedgerVerdict v = audit({{1, 0}}, 2);
  EXPECT_FALSE(v.ok());
  EXPECT_EQ(v.misplaced, 2);
  EXPECT_EQ(v.lost, 2);
  EXPECT_THAT(v.misplaced_list.at(0).detail, HasSubstr("step 1 trains [4, 8)"));
}
TEST_F(LedgerAuditTest, NegativePositionsAreMisplaced) {
  record(1, 0, 0, {0, 1, 2, 3, -1});
  EXPECT_EQ(audit({{1, 0}}, 1).misplaced, 1);
}
TEST_F(LedgerAuditTest, VoidPositionsCountOnceWhetherListedOnceOrTwice) {
  record(1, 0, 0, {0, 1}, {{1, "damaged video"}});
  record(1, 1, 0, {2}, {{3, "no bytes"}});
  const LedgerVerdict v = audit({{1, 0}}, 1);
  EXPECT_TRUE(v.ok());
  EXPECT_EQ(v.trained, 2);
  EXPECT_EQ(v.voided, 2);
  ASSERT_EQ(v.void_list.size(), 2u);
  EXPECT_EQ(v.void_list[0].detail, "damaged video");
  EXPECT_EQ(v.void_list[1].position, 3);
}
TEST_F(LedgerAuditTest, ChangedBytesAfterARollbackAreReported) {
  for (std::int64_t s = 0; s < 2; ++s) step(1, s);
  record(2, 0, 1, {4, 6}, {}, 100);
  record(2, 1, 1, {5, 7});
  const LedgerVerdict v = audit({{1, 0}, {2, 1}}, 2);
  EXPECT_TRUE(v.ok());
  EXPECT_EQ(v.changed, 2);
  EXPECT_EQ(v.changed_list.at(0).position, 4);
}
TEST_F(LedgerAuditTest, StepsBeyondTheCommittedOnesDoNotCount) {
  for (std::int64_t s = 0; s < 5; ++s) step(1, s);
  const LedgerVerdict v = audit({{1, 0}}, 3);
  EXPECT_TRUE(v.ok());
  EXPECT_EQ(v.superseded, 8);
}
TEST_F(LedgerAuditTest, TornFilesAreNamedAndTheirLastStepIsLost) {
  step(1, 0);
  const std::string file = folder() + "/" + ledger_file_name(1, 1);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  const LedgerVerdict v = audit({{1, 0}}, 1);
  EXPECT_THAT(v.torn, ElementsAre(file));
  EXPECT_EQ(v.lost, 2);
}
TEST_F(LedgerAuditTest, APageThatAPowerCutTookBehindTheLastCommitIsNoDamage) {
  for (std::int64_t s = 0; s < 6; ++s) step(1, s);
  // What follows the checkpoint of step 3 was not synced: a page in the middle of it is gone, later lines are there.
  const std::string file = folder() + "/" + ledger_file_name(1, 1);
  std::string text = text_of(file);
  std::size_t begin = 0;
  for (int line = 0; line < 4; ++line) begin = text.find('\n', begin) + 1;
  text.replace(begin, 40, 40, '\0');
  std::ofstream(file, std::ios::binary) << text;
  for (std::int64_t s = 3; s < 5; ++s) step(2, s);
  const LedgerVerdict v = audit({{1, 0}, {2, 3}}, 5);
  EXPECT_TRUE(v.ok());
  EXPECT_THAT(v.torn, ElementsAre(file));
}
TEST_F(LedgerAuditTest, ALineThatWasSyncedAndIsNoRecordIsDamage) {
  for (std::int64_t s = 0; s < 3; ++s) step(1, s);
  const std::string file = folder() + "/" + ledger_file_name(1, 0);
  flip_byte(file, 30);
  const auto verdict = LedgerAudit({{1, 0}}, 3, kBatch, 10).run(folder());
  EXPECT_EQ(verdict.error().code(), Errc::data_loss);
  EXPECT_THAT(verdict.error().message(), HasSubstr(file + ":1: not a ledger record"));
}
TEST_F(LedgerAuditTest, WorldMayChangeBetweenEpochs) {
  for (std::int64_t s = 0; s < 2; ++s) step(1, s);
  record(2, 0, 2, {8, 9, 10, 11});
  EXPECT_TRUE(audit({{1, 0}, {2, 2}}, 3).ok());
}
TEST_F(LedgerAuditTest, ListsAreCutAndCountsAreNot) {
  std::filesystem::create_directories(folder());
  const LedgerVerdict v = audit({{1, 0}}, 1000);
  EXPECT_EQ(v.lost, 4000);
  EXPECT_EQ(v.lost_list.size(), LedgerVerdict::kMaxListed);
  EXPECT_EQ(v.lost_list.back().position, 19);
}
TEST_F(LedgerAuditTest, VoidListHoldsTheSmallestPositionsOfAllRanks) {
  std::vector<VoidPosition> high, low;
  for (std::int64_t i = 0; i < 30; ++i) high.push_back({i * 4 + 3, "x"});
  for (const auto& v : high) record(1, 0, v.position / kBatch, {}, {v});
  for (std::int64_t s = 0; s < 30; ++s) record(1, 1, s, {s * 4, s * 4 + 1}, {{s * 4 + 2, "y"}});
  const LedgerVerdict v = audit({{1, 0}}, 30);
  EXPECT_TRUE(v.ok());
  EXPECT_EQ(v.voided, 60);
  EXPECT_EQ(v.void_list.at(0).position, 2);
  EXPECT_EQ(v.void_list.at(1).position, 3);
}
TEST_F(LedgerAuditTest, CountersThatBalanceAreOk) {
  replay(1, 0, {{"produced", 100}, {"resident", 100}, {"draws", 0}, {"updates", 0}});
  replay(1, 1, {{"produced", 200}, {"resident", 150}, {"evicted", 40}, {"lost", 10}, {"draws", 512}, {"updates", 2}});
  const LedgerVerdict v = audit({{1, 0}}, 2);
  EXPECT_TRUE(v.ok());
  EXPECT_EQ(v.counters.records, 2);
  EXPECT_EQ(v.counters.totals.at("draws"), 512);
}
TEST_F(LedgerAuditTest, ATransitionThatIsNowhereIsFound) {
  replay(1, 0, {{"produced", 100}, {"resident", 90}, {"evicted", 9}});
  const LedgerVerdict v = audit({{1, 0}}, 1);
  EXPECT_FALSE(v.ok());
  EXPECT_EQ(v.counters.unbalanced, 1);
  EXPECT_THAT(v.counters.unbalanced_list.at(0).detail, HasSubstr("100 produced, but 90 resident + 9 evicted + 0 lost"));
}
TEST_F(LedgerAuditTest, AFallingTotalIsFound) {
  replay(1, 0, {{"updates", 5}, {"resident", 8}});
  replay(1, 1, {{"updates", 4}, {"resident", 3}});
  const LedgerVerdict v = audit({{1, 0}}, 2);
  EXPECT_FALSE(v.ok());
  EXPECT_EQ(v.counters.backwards, 1);
  EXPECT_EQ(v.counters.backwards_list.at(0).detail, "updates fell from 5 to 4");
}
TEST_F(LedgerAuditTest, CountersOfARolledBackStepDoNotCount) {
  replay(1, 0, {{"produced", 10}, {"resident", 10}});
  replay(1, 1, {{"produced", 99}, {"resident", 1}});
  replay(2, 1, {{"produced", 20}, {"resident", 20}});
  EXPECT_TRUE(audit({{1, 0}, {2, 1}}, 2).ok());
}
TEST_F(LedgerAuditTest, UnknownFenceIsRefused) {
  step(7, 0);
  EXPECT_EQ(LedgerAudit({{1, 0}}, 1, kBatch, 10).run(folder()).error().code(), Errc::failed_precondition);
}
TEST_F(LedgerAuditTest, FileUnderAWrongNameIsRefused) {
  step(1, 0);
  std::filesystem::rename(folder() + "/" + ledger_file_name(1, 0), folder() + "/" + ledger_file_name(1, 5));
  EXPECT_EQ(LedgerAudit({{1, 0}}, 1, kBatch, 10).run(folder()).error().code(), Errc::data_loss);
}
TEST_F(LedgerAuditTest, OtherFilesAreIgnored) {
  step(1, 0);
  std::ofstream(folder() + "/notes.txt") << "x";
  EXPECT_TRUE(audit({{1, 0}}, 1).ok());
}
TEST_F(LedgerAuditTest, MissingFolderIsNotFound) {
  EXPECT_EQ(LedgerAudit({{1, 0}}, 1, kBatch, 10).run(folder()).error().code(), Errc::not_found);
}

}  // namespace
}  // namespace troupe::workers

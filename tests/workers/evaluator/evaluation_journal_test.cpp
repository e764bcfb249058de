#include "workers/evaluator/evaluation_journal.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/support/scratch_folder.h"
#include "tests/workers/rollout/scripted_net.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;

struct EvaluationJournalTest : ::testing::Test {
  const ScratchFolder scratch;
  const ScriptedNet net{ScriptedNet::Options{}};
  EvaluationJournal journal{scratch.path(), net};

  static PublishedWeights weights() {
    PublishedWeights weights{
        .fence = 7, .version = 30, .views = {}, .normaliser = {Moments(2), Moments(0)}, .flats = {}};
    weights.flats.push_back(at::arange(2048, at::kFloat));
    weights.normaliser.observed.add(std::vector<float>{1, 2, 3, 4});
    return weights;
  }
  std::optional<EvaluationUnderWay> next_process() const {
    EvaluationJournal next(scratch.path(), net);
    return next.recover().value();
  }
};

TEST_F(EvaluationJournalTest, NothingIsUnderWayWhereNothingBegan) { EXPECT_FALSE(next_process()); }

TEST_F(EvaluationJournalTest, TheNextProcessHasTheWeightsAndWhatHasEnded) {
  journal.begin(weights(), 1.5e9);
  journal.episode_begins(100, false);
  journal.episode_begins(101, false);
  journal.episode_ended(
      {.seed = 101, .total_return = 0.1, .length = 17, .success_once = true, .success_at_end = false});
  journal.episode_begins(102, false);
  journal.episode_ended({.seed = 102, .lost = "the wheel came off"});
  const auto under_way = next_process();
  ASSERT_TRUE(under_way);
  EXPECT_EQ(under_way->begun_at, 1.5e9);
  EXPECT_EQ(under_way->starts, 2);
  ASSERT_EQ(under_way->ended.size(), 2u);
  EXPECT_EQ(under_way->ended[0].total_return, 0.1);
  EXPECT_EQ(under_way->ended[0].length, 17);
  EXPECT_TRUE(under_way->ended[0].success_once);
  EXPECT_FALSE(under_way->ended[0].success_at_end);
  EXPECT_EQ(under_way->ended[1].lost, "the wheel came off");
  EXPECT_THAT(under_way->suspects, ElementsAre(100));
  EXPECT_EQ(under_way->weights->fence, 7u);
  EXPECT_EQ(under_way->weights->version, 30);
  EXPECT_TRUE(at::equal(under_way->weights->flats[0], weights().flats[0]));
  EXPECT_EQ(under_way->weights->views.at("actor")["w"].data_ptr<float>()[3], 3.0f);
  EXPECT_EQ(under_way->weights->normaliser.observed.mean(1), 3);
}

TEST_F(EvaluationJournalTest, WhatWasRepeatedWhenTheProcessEndedIsLost) {
  journal.begin(weights(), 0);
  journal.episode_begins(100, false);
  EvaluationJournal second(scratch.path(), net);
  ASSERT_THAT(second.recover().value()->suspects, ElementsAre(100));
  second.episode_begins(100, true);
  const auto third = next_process();
  EXPECT_THAT(third->suspects, ::testing::IsEmpty());
  ASSERT_EQ(third->ended.size(), 1u);
  EXPECT_EQ(third->ended[0].seed, 100);
  EXPECT_NE(third->ended[0].lost, "");
  EXPECT_EQ(third->starts, 3);
}

TEST_F(EvaluationJournalTest, AReportedEvaluationIsNotGoneOnWith) {
  journal.begin(weights(), 0);
  journal.episode_begins(100, false);
  journal.close();
  EvaluationJournal next(scratch.path(), net);
  EXPECT_FALSE(next.recover().value());
  EXPECT_EQ(next.reported(), std::pair(std::uint64_t{7}, std::int64_t{30}));
}

TEST_F(EvaluationJournalTest, ALineThatACrashCutOffIsNone) {
  journal.begin(weights(), 0);
  journal.episode_begins(100, false);
  std::ofstream(scratch / "evaluation.journal", std::ios::app) << R"({"end":100,"ret)";
  EXPECT_THAT(next_process()->suspects, ElementsAre(100));
}

TEST_F(EvaluationJournalTest, TheNextEvaluationReplacesTheOneBefore) {
  journal.begin(weights(), 0);
  journal.episode_begins(100, false);
  journal.close();
  PublishedWeights later = weights();
  later.version = 40;
  journal.begin(later, 0);
  const auto under_way = next_process();
  EXPECT_EQ(under_way->weights->version, 40);
  EXPECT_THAT(under_way->suspects, ::testing::IsEmpty());
}

TEST_F(EvaluationJournalTest, WeightsOfAnotherVersionAreRefused) {
  journal.begin(weights(), 0);
  std::ofstream(scratch / "evaluation.weights") << "{}\n";
  EvaluationJournal next(scratch.path(), net);
  EXPECT_EQ(next.recover().error().code(), Errc::data_loss);
}

TEST_F(EvaluationJournalTest, WeightsWithADamagedHeadAreRefused) {
  for (const char* head :
       {R"({"fence":7,"version":30,"elements":[2048.5,0]})", R"({"fence":7,"version":30,"elements":[1e300,0]})",
        R"({"fence":"7","version":30,"elements":[2048,0]})", R"({"fence":7,"version":30,"elements":{"a":1}})",
        R"({"fence":7,"version":30,"elements":[9223372036854775807,0]})", R"({"fence":7)"}) {
    EvaluationJournal(scratch.path(), net).begin(weights(), 0);
    std::ofstream(scratch / "evaluation.weights") << head << "\n";
    const auto recovered = EvaluationJournal(scratch.path(), net).recover();
    ASSERT_FALSE(recovered) << head;
    EXPECT_EQ(recovered.error().code(), Errc::data_loss) << head;
  }
}

TEST_F(EvaluationJournalTest, WhereNothingCanBeWrittenTheEvaluationGoesOn) {
  EvaluationJournal nowhere(scratch / "no/such/folder", net);
  std::ofstream(scratch / "no") << "a file";
  nowhere.begin(weights(), 0);
  nowhere.episode_begins(100, false);
  nowhere.close();
  EXPECT_FALSE(nowhere.recover().value());
}

}  // namespace
}  // namespace troupe::workers

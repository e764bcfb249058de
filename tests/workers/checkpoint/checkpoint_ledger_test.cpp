#include "workers/checkpoint/checkpoint_ledger.h"

#include <gmock/gmock.h>

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CheckpointLedgerTest, DatasetsAndPositionsAreRead) {
  const auto ledger = checkpoint_ledger_from_json(R"({"version": 1, "void_positions": [3, 8], "bad_positions": [8],
    "datasets": [{"root": "/data/a", "fingerprint": "f", "share": 1.0}]})",
                                                  "ledger.json");
  ASSERT_TRUE(ledger) << ledger.error().message();
  EXPECT_THAT(ledger->void_positions, ElementsAre(3, 8));
  EXPECT_THAT(ledger->bad_positions, ElementsAre(8));
  ASSERT_EQ(ledger->datasets.size(), 1u);
  EXPECT_EQ(ledger->datasets[0].root, "/data/a");
  EXPECT_EQ(ledger->datasets[0].fingerprint, "f");
}

TEST(CheckpointLedgerTest, OneOfAnEarlierVersionHasNothingToSay) {
  const auto ledger = checkpoint_ledger_from_json(R"({"seed": 1})", "ledger.json");
  ASSERT_TRUE(ledger) << ledger.error().message();
  EXPECT_TRUE(ledger->datasets.empty());
  EXPECT_TRUE(ledger->void_positions.empty());
}

TEST(CheckpointLedgerTest, ADamagedOneIsRefusedWithItsPath) {
  for (const char* text :
       {"", "[]", "7", R"({"void_positions": {}})", R"({"bad_positions": ["x"]})", R"({"void_positions": [1e30]})",
        R"({"bad_positions": [1.5]})", R"({"datasets": [3]})", R"({"datasets": ["a"]})",
        R"({"datasets": [{"root": "a"}]})", R"({"datasets": [{"root": "a", "fingerprint": 5}]})"}) {
    const auto ledger = checkpoint_ledger_from_json(text, "here/ledger.json");
    ASSERT_FALSE(ledger) << text;
    EXPECT_EQ(ledger.error().code(), Errc::data_loss);
    EXPECT_THAT(ledger.error().message(), HasSubstr("here/ledger.json"));
  }
}

}  // namespace
}  // namespace troupe::workers

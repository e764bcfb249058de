#include "workers/checkpoint/ledger.h"

#include <nlohmann/json.hpp>

#include "base/fault.h"
#include "base/hash.h"
#include "tests/workers/checkpoint/fixture.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LedgerTest : public testing::CheckpointFixture {
 protected:
  ~LedgerTest() override { (void)arm_faults(""); }
  std::string folder() const { return path("ledger"); }
  static LedgerRecord record(std::int64_t step, std::vector<std::int64_t> positions) {
    LedgerRecord r{.fence = 3, .step = step, .rank = 1, .positions = std::move(positions)};
    for (const auto p : r.positions) r.xxh3.push_back(static_cast<std::uint64_t>(p) * 0x9E3779B97F4A7C15ULL);
    return r;
  }
  void write(const std::vector<LedgerRecord>& records) {
    auto writer = LedgerWriter::open(folder(), 3, 1);
    for (const auto& r : records) ASSERT_TRUE(writer->append(r));
    ASSERT_TRUE(writer->sync());
  }
  std::string file() const { return folder() + "/" + ledger_file_name(3, 1); }
  std::vector<std::int64_t> steps(bool torn = false) {
    std::vector<std::int64_t> found;
    const auto scan = scan_ledger(file(), [&](const LedgerRecord& r) -> Result<void> {
      found.push_back(r.step);
      return {};
    });
    EXPECT_TRUE(scan) << scan.error().message();
    EXPECT_EQ(scan && scan->torn, torn);
    return found;
  }
};

TEST_F(LedgerTest, RecordsReadBackAsWritten) {
  LedgerRecord r = record(7, {56, 57, 60});
  r.voids = {{57, "decode: \"x.mp4\" is damaged"}};
  write({r});
  EXPECT_EQ(fs::path(file()).filename(), "fence-0000000000000003-rank-1.jsonl");
  int seen = 0;
  ASSERT_TRUE(scan_ledger(file(), [&](const LedgerRecord& got) -> Result<void> {
    ++seen;
    EXPECT_EQ(got.fence, 3u);
    EXPECT_EQ(got.step, 7);
    EXPECT_EQ(got.rank, 1);
    EXPECT_EQ(got.positions, r.positions);
    EXPECT_EQ(got.xxh3, r.xxh3);
    EXPECT_EQ(got.voids.at(0).position, 57);
    EXPECT_EQ(got.voids.at(0).reason, r.voids[0].reason);
    return {};
  }));
  EXPECT_EQ(seen, 1);
}
TEST_F(LedgerTest, ALineThatIsNestedDeepIsDamageAndNoEndOfTheStack) {
  write({record(0, {0}), record(1, {4})});
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  std::ofstream(file(), std::ios::binary) << "{\"a\":" << deep << ",\"check\":\"0000000000000000\"}\n"
                                          << ledger_line(record(2, {8}));
  const auto scan = scan_ledger(file(), [](const LedgerRecord&) -> Result<void> { return {}; });
  ASSERT_TRUE(scan) << scan.error().message();
  EXPECT_THAT(scan->damage, HasSubstr("nested"));
  EXPECT_EQ(scan->records, 1);
}
TEST_F(LedgerTest, ANumberThatIsNotWholeIsDamage) {
  nlohmann::json body = {
      {"fence", to_hex(3)}, {"positions", {0}}, {"rank", 1e27}, {"step", 0}, {"void", nlohmann::json::array()},
      {"xxh3", {to_hex(0)}}};
  body["check"] = to_hex(xxh3_64(std::string_view(body.dump())));
  write({record(0, {0})});
  std::ofstream(file(), std::ios::binary) << body.dump() << "\n" << ledger_line(record(1, {4}));
  const auto scan = scan_ledger(file(), [](const LedgerRecord&) -> Result<void> { return {}; });
  ASSERT_TRUE(scan) << scan.error().message();
  EXPECT_THAT(scan->damage, HasSubstr("whole number"));
  EXPECT_EQ(scan->records, 1);
}
TEST_F(LedgerTest, LinesWaitWhileTheDiskIsFullAndKeepTheirOrder) {
  auto writer = LedgerWriter::open(folder(), 3, 1);
  ASSERT_TRUE(writer->append(record(0, {0})));
  ASSERT_TRUE(arm_faults("ledger.append:enospc:3"));
  EXPECT_TRUE(writer->append(record(1, {1})));
  EXPECT_THAT(writer->waits_for(), HasSubstr("No space left on device"));
  EXPECT_TRUE(writer->append(record(2, {2})));
  EXPECT_THAT(steps(), ElementsAre(0));
  const auto synced = writer->sync();
  ASSERT_FALSE(synced) << "lines that are not on disk do not survive";
  EXPECT_EQ(synced.error().code(), Errc::resource_exhausted);
  EXPECT_TRUE(writer->append(record(3, {3})));
  EXPECT_EQ(writer->waits_for(), "");
  EXPECT_TRUE(writer->sync());
  EXPECT_THAT(steps(), ElementsAre(0, 1, 2, 3));
}
TEST_F(LedgerTest, NoMoreThan64MiBOfLinesWait) {
  auto writer = LedgerWriter::open(folder(), 3, 1);
  ASSERT_TRUE(arm_faults("ledger.append:enospc:2"));
  LedgerRecord large = record(0, {0});
  large.voids = {{0, std::string(std::size_t{33} << 20, 'x')}};
  EXPECT_TRUE(writer->append(large));
  large.step = 1;
  const auto refused = writer->append(large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::resource_exhausted);
}
TEST_F(LedgerTest, CountersReadBackAndLinesWithoutThemAreAsBefore) {
  LedgerRecord r = record(7, {56});
  EXPECT_EQ(ledger_line(r).find("counters"), std::string::npos);
  r.counters = {{"draws", 640}, {"updates", 10}};
  write({r});
  ASSERT_TRUE(scan_ledger(file(), [&](const LedgerRecord& got) -> Result<void> {
    EXPECT_EQ(got.counters, r.counters);
    return {};
  }));
}
TEST_F(LedgerTest, ReasonsThatAreNotTextStillMakeAGoodLine) {
  LedgerRecord r = record(1, {8});
  r.voids = {{8, "name \xff\xfe of a file"}};
  write({r});
  EXPECT_THAT(steps(), ElementsAre(1));
}
TEST_F(LedgerTest, EveryTornLastLineIsToleratedAndNamed) {
  write({record(0, {0, 1}), record(1, {8, 9})});
  const std::string whole = text_of(file());
  const std::size_t first = whole.find('\n') + 1;
  for (std::size_t size = first + 1; size < whole.size(); ++size) {
    std::ofstream(file(), std::ios::binary) << whole.substr(0, size);
    EXPECT_THAT(steps(true), ElementsAre(0)) << size;
  }
}
TEST_F(LedgerTest, WriterCutsATornLineBeforeItAppends) {
  write({record(0, {0, 1})});
  std::ofstream(file(), std::ios::binary | std::ios::app) << "{\"fence\":\"0000";
  write({record(1, {8, 9})});
  EXPECT_THAT(steps(), ElementsAre(0, 1));
}
TEST_F(LedgerTest, TornFileWithoutAnyNewlineIsEmptied) {
  fs::create_directories(folder());
  std::ofstream(file(), std::ios::binary) << std::string(10'000, 'x');
  write({record(1, {8, 9})});
  EXPECT_THAT(steps(), ElementsAre(1));
}
TEST_F(LedgerTest, ALineInTheMiddleThatIsNoRecordIsNamedAndLinesBehindItAreRead) {
  write({record(0, {0, 1}), record(1, {8, 9}), record(2, {16, 17})});
  flip_byte(file(), static_cast<std::int64_t>(text_of(file()).find('\n')) + 30);
  std::vector<std::int64_t> found;
  const auto scan = scan_ledger(file(), [&](const LedgerRecord& r) -> Result<void> {
    found.push_back(r.step);
    return {};
  });
  ASSERT_TRUE(scan) << scan.error().message();
  EXPECT_THAT(found, ElementsAre(0, 2));
  EXPECT_THAT(scan->damage, HasSubstr(file() + ":2"));
  EXPECT_EQ(scan->records_before_damage, 1);
  EXPECT_FALSE(scan->torn);
}
TEST_F(LedgerTest, ChangedPositionFailsTheCheck) {
  write({record(0, {10, 11}), record(1, {18, 19})});
  std::string text = text_of(file());
  text.replace(text.find("[10,11]"), 7, "[10,12]");
  std::ofstream(file(), std::ios::binary) << text;
  EXPECT_THAT(scan_ledger(file(), [](const LedgerRecord&) -> Result<void> { return {}; })->damage, HasSubstr("check"));
}
TEST_F(LedgerTest, ForeignRecordsAreRefused) {
  auto writer = LedgerWriter::open(folder(), 3, 0);
  EXPECT_EQ(writer->append(record(0, {0})).error().code(), Errc::invalid_argument);
}
TEST_F(LedgerTest, PositionsNeedTheirDigests) {
  auto writer = LedgerWriter::open(folder(), 3, 1);
  LedgerRecord r = record(0, {0});
  r.xxh3.clear();
  EXPECT_EQ(writer->append(r).error().code(), Errc::invalid_argument);
}
TEST_F(LedgerTest, MissingFileIsNotFound) {
  EXPECT_EQ(scan_ledger(path("none"), [](const LedgerRecord&) -> Result<void> { return {}; }).error().code(),
            Errc::not_found);
}

}  // namespace
}  // namespace troupe::workers

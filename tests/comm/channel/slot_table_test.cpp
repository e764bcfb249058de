#include "comm/channel/slot_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "comm/channel/consumer_core.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

/// Remembers what a producer was told.
class RecordingLink final : public ProducerLink {
 public:
  void deliver(const Credit& credit, std::uint64_t serial, std::span<const std::byte> request) override {
    delivered.emplace_back(credit, serial);
    requests.emplace_back(request.begin(), request.end());
  }
  void close(const std::string& reason) override { closed = reason; }
  std::vector<std::pair<Credit, std::uint64_t>> delivered;
  std::vector<std::vector<std::byte>> requests;
  std::string closed;
};

std::shared_ptr<SlotTable> make_table(std::uint32_t slots = 2, std::size_t slot_bytes = 100) {
  auto arena = Arena::create("test", page_aligned(slot_bytes) * slots);
  return std::make_shared<SlotTable>(std::move(arena).value(), slots, slot_bytes);
}

Credit credit(std::uint32_t slot, std::uint64_t tag, std::uint64_t fence = 1) {
  return {.slot = slot, .tag = tag, .fence = fence};
}
Item empty_item(const Credit& c) { return {.credit = c, .bytes = 0, .xxh3 = xxh3_64(std::span<const std::byte>())}; }

class SlotTableTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordingLink> join(const std::string& name, std::size_t end) {
    auto link = std::make_shared<RecordingLink>();
    const auto admitted = table_->admit(end, name, link);
    EXPECT_TRUE(admitted && *admitted);
    return link;
  }
  std::shared_ptr<SlotTable> table_ = make_table();
  std::size_t end_ = table_->open_end();
};

TEST_F(SlotTableTest, ASlotGoesFromFreeOverGrantedAndReceivingToFilledAndBack) {
  join("a", end_);
  EXPECT_EQ(table_->state(0), SlotState::free);
  ASSERT_TRUE(table_->grant("a", credit(0, 5)));
  EXPECT_EQ(table_->state(0), SlotState::granted);
  ASSERT_TRUE(table_->begin_receive(end_, "a", credit(0, 5)));
  EXPECT_EQ(table_->state(0), SlotState::receiving);
  table_->end_receive(end_, empty_item(credit(0, 5)));
  EXPECT_EQ(table_->state(0), SlotState::filled);
  ASSERT_TRUE(table_->grant("a", credit(0, 6)));
  EXPECT_EQ(table_->state(0), SlotState::granted);
}

TEST_F(SlotTableTest, FreeSlotsAreThoseThatNobodyUses) {
  join("a", end_);
  EXPECT_EQ(table_->free_slots(), 2U);
  EXPECT_EQ(*table_->grant("a", credit(1, 5)), 1U) << "one that is named";
  EXPECT_EQ(*table_->grant("a", credit(kAnySlot, 6)), 0U);
  EXPECT_EQ(table_->grant("a", credit(kAnySlot, 7)).error().code(), Errc::resource_exhausted);
  ASSERT_TRUE(table_->begin_receive(end_, "a", credit(1, 5)));
  table_->end_receive(end_, empty_item(credit(1, 5)));
  EXPECT_EQ(table_->free_slots(), 0U);
  table_->release(1);
  EXPECT_EQ(table_->state(1), SlotState::free);
  EXPECT_EQ(table_->free_slots(), 1U);
  table_->drop("a");
  EXPECT_EQ(table_->free_slots(), 2U);
}

TEST_F(SlotTableTest, ASlotThatIsBeingReceivedIsInUse) {
  join("a", end_);
  ASSERT_TRUE(table_->grant("a", credit(0, 5)));
  ASSERT_TRUE(table_->begin_receive(end_, "a", credit(0, 5)));
  EXPECT_EQ(table_->grant("a", credit(0, 6)).error().code(), Errc::invalid_argument);
  table_->end_receive(end_, empty_item(credit(0, 5)));
}

TEST_F(SlotTableTest, EveryPartOfACreditMustMatch) {
  join("a", end_);
  join("b", end_);
  ASSERT_TRUE(table_->grant("a", credit(0, 5, 1)));
  EXPECT_FALSE(table_->begin_receive(end_, "b", credit(0, 5, 1)));
  EXPECT_FALSE(table_->begin_receive(end_, "nobody", credit(0, 5, 1)));
  EXPECT_FALSE(table_->begin_receive(end_, "a", credit(1, 5, 1)));
  EXPECT_FALSE(table_->begin_receive(end_, "a", credit(9, 5, 1)));
  EXPECT_FALSE(table_->begin_receive(end_, "a", credit(0, 6, 1)));
  EXPECT_FALSE(table_->begin_receive(end_, "a", credit(0, 5, 2)));
  EXPECT_EQ(table_->stats(end_).late_items, 6U);
  EXPECT_EQ(table_->stats(end_).credits_outstanding, 1U);
  EXPECT_EQ(table_->state(0), SlotState::granted);
}

TEST_F(SlotTableTest, ARepeatedHelloRepeatsWhatIsOwedWithTheSameSerials) {
  const auto link = join("a", end_);
  ASSERT_TRUE(table_->grant("a", credit(1, 5)));
  ASSERT_TRUE(table_->grant("a", credit(0, 6)));
  const auto first = link->delivered;
  const auto again = table_->admit(end_, "a", std::make_shared<RecordingLink>());
  EXPECT_FALSE(*again);
  ASSERT_EQ(link->delivered.size(), 4U);
  EXPECT_EQ(link->delivered[2].second, first[0].second);
  EXPECT_EQ(link->delivered[3].second, first[1].second);
  EXPECT_EQ(link->delivered[2].first.tag, 5U);
}

TEST_F(SlotTableTest, ARepeatedCreditBringsItsRequestAgain) {
  const auto link = join("a", end_);
  const std::vector<std::byte> request{std::byte{1}, std::byte{2}, std::byte{3}};
  ASSERT_TRUE(table_->grant("a", credit(1, 5), request));
  EXPECT_EQ(std::vector<std::byte>(table_->slot(1).begin(), table_->slot(1).begin() + 3), request);
  ASSERT_TRUE(table_->admit(end_, "a", std::make_shared<RecordingLink>()));
  ASSERT_EQ(link->requests.size(), 2U);
  EXPECT_EQ(link->requests[1], request);
  EXPECT_EQ(link->delivered[1].first.request_bytes, 3U);
}

TEST_F(SlotTableTest, ADroppedNameIsSpentEvenIfItNeverCame) {
  table_->drop("a");
  EXPECT_EQ(table_->admit(end_, "a", std::make_shared<RecordingLink>()).error().code(), Errc::failed_precondition);
}

TEST_F(SlotTableTest, AFilledSlotSurvivesTheDropOfItsProducer) {
  join("a", end_);
  ASSERT_TRUE(table_->grant("a", credit(0, 5)));
  ASSERT_TRUE(table_->grant("a", credit(1, 6)));
  ASSERT_TRUE(table_->begin_receive(end_, "a", credit(0, 5)));
  table_->end_receive(end_, empty_item(credit(0, 5)));
  table_->drop("a");
  EXPECT_EQ(table_->state(0), SlotState::filled);
  EXPECT_EQ(table_->state(1), SlotState::free);
}

TEST_F(SlotTableTest, ADropWaitsForTheItemUnderWay) {
  join("a", end_);
  ASSERT_TRUE(table_->grant("a", credit(0, 5)));
  ASSERT_TRUE(table_->begin_receive(end_, "a", credit(0, 5)));
  std::atomic<bool> ended{false};
  SlotState after_drop = SlotState::free;
  std::thread dropper([&] {
    table_->drop("a");
    EXPECT_TRUE(ended.load());
    after_drop = table_->state(0);
  });
  ended = true;
  table_->end_receive(end_, empty_item(credit(0, 5)));
  dropper.join();
  EXPECT_EQ(after_drop, SlotState::filled);
}

TEST_F(SlotTableTest, AnEndKnowsOnlyItsOwnProducers) {
  const auto other = table_->open_end();
  const auto link_a = join("a", end_);
  const auto link_b = join("b", other);
  EXPECT_FALSE(table_->admit(other, "a", std::make_shared<RecordingLink>()));
  ASSERT_TRUE(table_->grant("a", credit(0, 5)));
  EXPECT_FALSE(table_->begin_receive(other, "a", credit(0, 5)));
  EXPECT_EQ(table_->stats(other).late_items, 1U);
  EXPECT_EQ(table_->stats(end_).late_items, 0U);
  EXPECT_EQ(table_->stats(end_).credits_outstanding, 1U);
  EXPECT_EQ(table_->stats(other).credits_outstanding, 0U);
  table_->close_end(other, "bye");
  EXPECT_EQ(link_b->closed, "bye");
  EXPECT_EQ(link_a->closed, "");
  EXPECT_FALSE(table_->grant("b", credit(1, 6)));
}

TEST_F(SlotTableTest, SlotsDoNotOverlap) {
  const auto first = table_->slot(0);
  const auto second = table_->slot(1);
  EXPECT_EQ(first.size(), 100U);
  EXPECT_GE(second.data() - first.data(), 100);
}

TEST(ConsumerCoreTest, BytesThatDoNotFitTheirAnnouncementAreDamagedAndNeverWritten) {
  const auto table = make_table();
  std::vector<Item> items;
  ConsumerCore core(
      table, {.on_producer = {}, .on_item = [&](const std::string&, const Item& item) { items.push_back(item); }});
  ASSERT_TRUE(core.admit("a", std::make_shared<RecordingLink>()));
  ASSERT_TRUE(table->grant("a", credit(0, 5)));
  ASSERT_TRUE(table->grant("a", credit(1, 6)));
  const std::vector<std::byte> big(101, std::byte{1});
  EXPECT_TRUE(core.receive("a", {.credit = credit(0, 5), .bytes = 101, .xxh3 = xxh3_64(big)}, big));
  EXPECT_TRUE(core.receive("a", {.credit = credit(1, 6), .bytes = 50, .xxh3 = xxh3_64(big)}, big));
  ASSERT_EQ(items.size(), 2U);
  for (const auto& item : items) {
    EXPECT_NE(item.error.find("damaged in transit"), std::string::npos) << item.error;
    EXPECT_EQ(item.bytes, 0U);
    EXPECT_EQ(table->slot(item.credit.slot)[0], std::byte{0});
  }
}

TEST(ConsumerCoreTest, AnItemAfterCloseIsNotTaken) {
  const auto table = make_table();
  int calls = 0;
  ConsumerCore core(table, {.on_producer = {}, .on_item = [&](const std::string&, const Item&) { ++calls; }});
  const auto link = std::make_shared<RecordingLink>();
  ASSERT_TRUE(core.admit("a", link));
  ASSERT_TRUE(table->grant("a", credit(0, 5)));
  core.close("over");
  EXPECT_EQ(link->closed, "over");
  EXPECT_FALSE(core.receive("a", empty_item(credit(0, 5)), std::nullopt));
  EXPECT_FALSE(core.admit("b", std::make_shared<RecordingLink>()));
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace troupe::comm

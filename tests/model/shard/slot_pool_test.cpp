#include "model/shard/slot_pool.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace troupe::model {
namespace {

TEST(SlotPoolTest, AUnitIsHeldFromItsWriteUntilTheNextOne) {
  SlotPool pool(2, 16, at::kFloat);
  EXPECT_EQ(pool.bytes(), 2 * 16 * 4);
  pool.begin_write(0, 4);
  EXPECT_EQ(pool.held(0), SlotPool::kNone);
  pool.end_write(0, 4);
  EXPECT_THAT(pool.held(), ::testing::ElementsAre(4, SlotPool::kNone));
  pool.begin_read(0, 4);
  pool.end_read(0, 4);
  pool.begin_write(0, 6);
  pool.end_write(0, 6);
  EXPECT_EQ(pool.held(0), 6);
  pool.clear();
  EXPECT_EQ(pool.held(0), SlotPool::kNone);
}

using SlotPoolDeathTest = ::testing::Test;

TEST(SlotPoolDeathTest, OverwritingASlotInUseAborts) {
  SlotPool pool(1, 16, at::kFloat);
  pool.begin_write(0, 1);
  EXPECT_DEATH(pool.begin_write(0, 2), "unit 2 overwrites slot 0 while unit 1 uses it");
  pool.end_write(0, 1);
  pool.begin_read(0, 1);
  EXPECT_DEATH(pool.begin_write(0, 2), "unit 2 overwrites slot 0");
}

TEST(SlotPoolDeathTest, ReadingBeforeTheWriteEndsOrAsAnotherUnitAborts) {
  SlotPool pool(1, 16, at::kFloat);
  pool.begin_write(0, 1);
  EXPECT_DEATH(pool.begin_read(0, 1), "read of unit 1 in slot 0");
  pool.end_write(0, 1);
  EXPECT_DEATH(pool.begin_read(0, 2), "read of unit 2 in slot 0");
}

TEST(SlotPoolTest, AUnitWhoseValuesChangedIsForgottenAlone) {
  SlotPool pool(2, 8, at::kFloat);
  for (const int slot : {0, 1}) {
    pool.begin_write(slot, slot + 4);
    pool.end_write(slot, slot + 4);
  }
  pool.forget(5);
  EXPECT_EQ(pool.held(), (std::vector<int>{4, SlotPool::kNone}));
  pool.forget(7);
  EXPECT_EQ(pool.held(0), 4);
}

}  // namespace
}  // namespace troupe::model

#include "workers/checkpoint/snapshot_note.h"

#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

TEST(SnapshotNoteTest, ANoteReadsBackAsWritten) {
  const SnapshotNote note{.group_updates = {{"actor", 2}, {"critic", 4}}, .trainer = "{\"mean\":[0.5]}"};
  const auto back = snapshot_note(to_text(note, 4));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->group_updates, note.group_updates);
  EXPECT_EQ(back->trainer, note.trainer);
}

TEST(SnapshotNoteTest, ThereIsNothingToSayOfOneGroupWithoutState) {
  EXPECT_EQ(to_text({.group_updates = {{"model", 7}}, .trainer = ""}, 7), "");
  EXPECT_TRUE(snapshot_note("")->group_updates.empty());
}

TEST(SnapshotNoteTest, OtherTextIsRefused) { EXPECT_EQ(snapshot_note("{}").error().code(), Errc::invalid_argument); }

}  // namespace
}  // namespace troupe::workers

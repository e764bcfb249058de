#include "workers/checkpoint/commit.h"

#include "tests/workers/checkpoint/fixture.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CommitTest : public testing::CheckpointFixture {
 protected:
  std::string folder() const { return folder_.string(); }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> found;
    for (const auto& entry : list_checkpoints(folder())) found.push_back(entry.step);
    return found;
  }
};

TEST_F(CommitTest, CommitRenamesAndMovesLatest) {
  EXPECT_EQ(write_and_commit(manifest(2, 7)), path("step_000007"));
  EXPECT_EQ(fs::read_symlink(path("latest")), "step_000007");
  EXPECT_FALSE(fs::exists(tmp(manifest(2, 7))));
  write_and_commit(manifest(2, 1'234'567));
  EXPECT_EQ(fs::read_symlink(path("latest")), "step_1234567");
  EXPECT_THAT(steps(), ElementsAre(7, 1'234'567));
}
TEST_F(CommitTest, CommitWithoutManifestIsRefused) {
  const Manifest m = manifest(2);
  ASSERT_TRUE(write(m));
  fs::remove(tmp(m) + "/manifest.json");
  EXPECT_EQ(commit_checkpoint(folder(), tmp(m), m.step).error().code(), Errc::not_found);
  EXPECT_FALSE(fs::exists(path("latest")));
}
TEST_F(CommitTest, CommitOfAnotherStepIsRefused) {
  const Manifest m = manifest(2);
  ASSERT_TRUE(write(m));
  EXPECT_EQ(commit_checkpoint(folder(), tmp(m), 501).error().code(), Errc::failed_precondition);
}
TEST_F(CommitTest, CommitOfATruncatedFileIsRefused) {
  const Manifest m = manifest(2);
  ASSERT_TRUE(write(m));
  fs::resize_file(tmp(m) + "/rank-00000-of-00002.safetensors", 10);
  EXPECT_EQ(commit_checkpoint(folder(), tmp(m), m.step).error().code(), Errc::data_loss);
}
TEST_F(CommitTest, CommittingTwiceChangesNothing) {
  const Manifest m = manifest(2);
  const std::string first = write_and_commit(m);
  EXPECT_EQ(*commit_checkpoint(folder(), tmp(m), m.step), first);
}
TEST_F(CommitTest, ACheckpointOfAnotherGroupIsNotTakenForTheOneThatIsMissing) {
  write_and_commit(manifest(2, 500, 1));
  EXPECT_EQ(commit_checkpoint(folder(), path(checkpoint_tmp_name(500, 2)), 500).error().code(), Errc::not_found);
}
TEST_F(CommitTest, LaterAttemptAtAStepReplacesTheEarlier) {
  write_and_commit(manifest(2, 500, 1));
  write_and_commit(manifest(3, 500, 2));
  const auto entries = list_checkpoints(folder());
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].manifest.fence, 2u);
  EXPECT_FALSE(fs::exists(path(checkpoint_tmp_name(500, 2))));
}
TEST_F(CommitTest, ListIgnoresWhatIsNotACheckpoint) {
  write_and_commit(manifest(1, 3));
  ASSERT_TRUE(write(manifest(1, 4)));         // not committed
  fs::create_directory(path("step_000005"));  // garbage
  fs::create_directory(path("step_x"));
  std::ofstream(path("step_000006")) << "a file";
  EXPECT_THAT(steps(), ElementsAre(3));
}
TEST_F(CommitTest, NewestValidPassesOverDamage) {
  write_and_commit(manifest(2, 1));
  const std::string second = write_and_commit(manifest(2, 2));
  const std::string third = write_and_commit(manifest(2, 3));
  const std::string fourth = write_and_commit(manifest(2, 4));
  const std::string fifth = write_and_commit(manifest(2, 5));
  flip_byte(second + "/rank-00000-of-00002.safetensors", 2000);
  fs::resize_file(third + "/rank-00001-of-00002.safetensors", 64);
  fs::remove(fourth + "/manifest.json");
  flip_byte(fifth + "/ledger.jsonl", 0);
  EXPECT_EQ(newest_valid(folder(), CheckpointCheck::small_files)->step, 2);
  EXPECT_EQ(newest_valid(folder(), CheckpointCheck::digests)->step, 1);
}
TEST_F(CommitTest, NothingValidIsNotFound) {
  EXPECT_EQ(newest_valid(folder()).error().code(), Errc::not_found);
  EXPECT_EQ(newest_valid(path("absent")).error().code(), Errc::not_found);
}

TEST_F(CommitTest, TheNewestCheckpointIsNotPassedOverForItsDamage) {
  const std::string one = write_and_commit(manifest(2, 1));
  const std::string two = write_and_commit(manifest(2, 2));
  const auto damaged = [&](const std::string& file) {
    const auto newest = newest_checkpoint(folder());
    ASSERT_FALSE(newest) << file;
    EXPECT_EQ(newest.error().code(), Errc::data_loss);
    EXPECT_THAT(newest.error().message(), AllOf(HasSubstr(two + "/" + file), HasSubstr("name " + one)));
  };
  flip_byte(two + "/ledger.jsonl", 0);
  damaged("ledger.jsonl");
  flip_byte(two + "/ledger.jsonl", 0);
  fs::resize_file(two + "/rank-00001-of-00002.safetensors", 64);
  damaged("rank-00001-of-00002.safetensors");
  fs::remove(two + "/manifest.json");
  EXPECT_EQ(newest_checkpoint(folder())->step, 1) << "what lies there is no checkpoint";
  EXPECT_EQ(newest_checkpoint(path("absent")).error().code(), Errc::not_found);
}
TEST_F(CommitTest, RankFilesAreLeftToTheirReaderButThoseOfFormat1) {
  const std::string one = write_and_commit(manifest(2, 1));
  const std::string file = one + "/rank-00000-of-00002.safetensors";
  flip_byte(file, -1);
  EXPECT_EQ(newest_checkpoint(folder())->step, 1);
  to_format_1(one);
  EXPECT_EQ(newest_checkpoint(folder())->step, 1);
  flip_byte(file, -1);
  const auto newest = newest_checkpoint(folder());
  ASSERT_FALSE(newest);
  EXPECT_THAT(newest.error().message(), AllOf(HasSubstr(file), Not(HasSubstr("before it"))));
}
TEST_F(CommitTest, AnOlderCheckpointIsSuggestedForDamageOnly) {
  const std::string one = write_and_commit(manifest(2, 1));
  write_and_commit(manifest(2, 2));
  const auto damage = [&](const std::string& name) { return Error{Errc::data_loss, path(name) + "/file: damage"}; };
  const Error other{Errc::failed_precondition, path("latest") + ": other"}, recording{Errc::data_loss, "v.mp4: damage"};
  const std::string hint = "; to use the checkpoint before it, name " + fs::canonical(one).string();
  EXPECT_EQ(suggest_older(damage("latest"), path("latest")).message(), damage("latest").message() + hint);
  EXPECT_EQ(suggest_older(other, path("latest")).message(), other.message());
  EXPECT_EQ(suggest_older(recording, path("latest")).message(), "v.mp4: damage") << "it lies elsewhere";
  EXPECT_EQ(suggest_older(damage("step_000001"), one).message(), damage("step_000001").message()) << "none before it";
  EXPECT_EQ(suggest_older(damage("step_000001"), folder()).message(), damage("step_000001").message());
}

TEST_F(CommitTest, PruneKeepsTheNewest) {
  for (const std::int64_t step : {1, 2, 3, 4, 5}) write_and_commit(manifest(1, step));
  EXPECT_THAT(prune_checkpoints(folder(), 2), ElementsAre(1, 2, 3));
  EXPECT_THAT(steps(), ElementsAre(4, 5));
  EXPECT_FALSE(fs::exists(path("step_000001")));
}
TEST_F(CommitTest, PruneNeverRemovesTheLast) {
  write_and_commit(manifest(1, 1));
  EXPECT_THAT(prune_checkpoints(folder(), 0), IsEmpty());
  EXPECT_THAT(steps(), ElementsAre(1));
}
TEST_F(CommitTest, DamagedCheckpointsDoNotCountAsKept) {
  const std::string one = write_and_commit(manifest(1, 1));
  const std::string two = write_and_commit(manifest(1, 2));
  fs::resize_file(two + "/rank-00000-of-00001.safetensors", 64);
  EXPECT_THAT(prune_checkpoints(folder(), 1), IsEmpty());
  EXPECT_TRUE(fs::exists(one)) << "the only good one";
  EXPECT_TRUE(fs::exists(two)) << "damage is for a person to look at";
}
TEST_F(CommitTest, ADamagedCheckpointIsSetAsideForTheOneBeforeIt) {
  const std::string one = write_and_commit(manifest(1, 1));
  write_and_commit(manifest(1, 2));
  const auto older = set_aside_checkpoint(folder(), 2, 7);
  ASSERT_TRUE(older) << older.error().message();
  EXPECT_EQ(older->directory, one);
  EXPECT_EQ(fs::read_symlink(path("latest")), "step_000001");
  EXPECT_TRUE(fs::exists(path("step_000002.damaged-0000000000000007/manifest.json")));
  EXPECT_THAT(steps(), ElementsAre(1));
  EXPECT_THAT(invalid_checkpoints(folder()), IsEmpty()) << "a person knows of it";
  prune_checkpoints(folder(), 1);
  EXPECT_TRUE(fs::exists(path("step_000002.damaged-0000000000000007"))) << "it is a person's to remove";
}
TEST_F(CommitTest, ACheckpointThatIsGoneIsSetAsideToo) {
  write_and_commit(manifest(1, 1));
  fs::remove_all(write_and_commit(manifest(1, 2)));
  EXPECT_TRUE(set_aside_checkpoint(folder(), 2, 7));
  EXPECT_EQ(fs::read_symlink(path("latest")), "step_000001");
}
TEST_F(CommitTest, TheOnlyCheckpointIsNotSetAside) {
  const std::string one = write_and_commit(manifest(1, 1));
  EXPECT_EQ(set_aside_checkpoint(folder(), 1, 7).error().code(), Errc::not_found);
  EXPECT_TRUE(fs::exists(one));
  EXPECT_EQ(fs::read_symlink(path("latest")), "step_000001");
}
TEST_F(CommitTest, TheOnlyCheckpointIsSetAsideOnRequest) {
  write_and_commit(manifest(1, 1));
  const auto initial = set_aside_checkpoint(folder(), 1, 7, OnlyCheckpoint::goes);
  ASSERT_TRUE(initial) << initial.error().message();
  EXPECT_EQ(initial->step, 0);
  EXPECT_EQ(initial->directory, "");
  EXPECT_TRUE(fs::exists(path("step_000001.damaged-0000000000000007/manifest.json")));
  EXPECT_FALSE(fs::exists(fs::symlink_status(path("latest"))));
}
TEST_F(CommitTest, PruneRemovesGarbageOfOlderFencesOnly) {
  write_and_commit(manifest(1, 10, 5));
  ASSERT_TRUE(write(manifest(1, 11, 4)));
  ASSERT_TRUE(write(manifest(1, 11, 5)));
  ASSERT_TRUE(write(manifest(1, 11, 6)));
  fs::create_directory(path("step_000009"));
  fs::create_directory(path("notes"));
  EXPECT_THAT(prune_checkpoints(folder(), 3), IsEmpty());
  EXPECT_FALSE(fs::exists(tmp(manifest(1, 11, 4))));
  EXPECT_TRUE(fs::exists(tmp(manifest(1, 11, 5))));
  EXPECT_TRUE(fs::exists(tmp(manifest(1, 11, 6))));
  EXPECT_FALSE(fs::exists(path("step_000009")));
  EXPECT_TRUE(fs::exists(path("notes")));
  prune_checkpoints(folder(), 3, 6);
  EXPECT_FALSE(fs::exists(tmp(manifest(1, 11, 5))));
  EXPECT_TRUE(fs::exists(tmp(manifest(1, 11, 6))));
}
TEST_F(CommitTest, PruneOfAnEmptyFolderDoesNothing) { EXPECT_THAT(prune_checkpoints(folder(), 3), IsEmpty()); }

}  // namespace
}  // namespace troupe::workers

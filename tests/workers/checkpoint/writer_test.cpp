#include "workers/checkpoint/writer.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/workers/checkpoint/fixture.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckpointWriterTest : public testing::CheckpointFixture {};

/// A place where writing can fail, and how often it is passed over before it does.
struct FaultCase {
  const char* spec;
  const char* name;
};
std::ostream& operator<<(std::ostream& out, const FaultCase& c) { return out << c.spec; }

class CheckpointFaultTest : public testing::CheckpointFixture, public ::testing::WithParamInterface<FaultCase> {};

const FaultCase kFaults[] = {
    {"checkpoint.create:fail", "Create"},           {"checkpoint.write:fail", "FirstWrite"},
    {"checkpoint.write:enospc:1:1", "SecondWrite"}, {"checkpoint.write@ledger.jsonl:enospc", "Attachment"},
    {"checkpoint.fsync:fail", "FirstFsync"},        {"checkpoint.fsync:enospc:1:1", "SecondFsync"},
    {"checkpoint.manifest:enospc", "Manifest"}};

INSTANTIATE_TEST_SUITE_P(Points, CheckpointFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(CheckpointFaultTest, FailureLeavesNothingAndTheNextAttemptSucceeds) {
  const Manifest m = manifest(2);
  ASSERT_TRUE(arm_faults(GetParam().spec));
  const auto failed = write(m);
  EXPECT_EQ(failed.error().code(), Errc::resource_exhausted);
  EXPECT_THAT(failed.error().message(), HasSubstr(tmp(m)));
  EXPECT_FALSE(fs::exists(tmp(m)));
  EXPECT_TRUE(write(m));
}
TEST_P(CheckpointFaultTest, KilledWriterLeavesGarbageThatNobodyTakesForACheckpoint) {
  const Manifest older = manifest(2, 400, 1), m = manifest(2);
  const std::string before = write_and_commit(older);
  const std::string spec = GetParam().spec;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::size_t action = spec.find(':') + 1;
    const std::size_t rest = spec.find(':', action);
    (void)arm_faults(spec.substr(0, action) + "kill" + (rest == std::string::npos ? "" : spec.substr(rest)));
    (void)write(m);
    ::_exit(1);  // the fault was never hit
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(fs::exists(tmp(m) + "/manifest.json"));
  EXPECT_EQ(newest_valid(folder_.string())->directory, before);
  EXPECT_FALSE(commit_checkpoint(folder_.string(), tmp(m), m.step));
  // The next life of the checkpointer gets the same directory.
  write_and_commit(m);
  EXPECT_EQ(newest_valid(folder_.string())->step, 500);
}

TEST_F(CheckpointWriterTest, ManifestListsSizesAndDigests) {
  const auto written = write(manifest(2));
  const Manifest m = *read_manifest(written->directory);
  ASSERT_EQ(m.files.size(), 3u);
  std::int64_t bytes = static_cast<std::int64_t>(fs::file_size(written->directory + "/manifest.json"));
  for (const ManifestFile& f : m.files) {
    const std::string text = text_of(written->directory + "/" + f.name);
    EXPECT_EQ(static_cast<std::int64_t>(text.size()), f.size);
    EXPECT_EQ(f.has_chunks, f.name != "ledger.jsonl");
    const std::string list = f.has_chunks ? text_of(written->directory + "/" + f.list_name()) : text;
    EXPECT_EQ(xxh3_128_hex(std::as_bytes(std::span(list))), f.digest);
    bytes += f.size + (f.has_chunks ? static_cast<std::int64_t>(list.size()) : 0);
  }
  EXPECT_EQ(written->bytes, bytes);
  const std::string manifest_text = text_of(written->directory + "/manifest.json");
  EXPECT_EQ(written->manifest_hash, xxh3_128_hex(std::as_bytes(std::span(manifest_text))));
}
TEST_F(CheckpointWriterTest, StateOfTheWrongSizeIsRefused) {
  const Manifest m = manifest(1);
  const std::vector<float> state(7);
  const auto written = CheckpointWriter().write({tmp(m), m, {std::as_bytes(std::span(state))}, {}});
  EXPECT_EQ(written.error().code(), Errc::invalid_argument);
  EXPECT_THAT(written.error().message(), HasSubstr("rank 0 has 28 bytes"));
}
TEST_F(CheckpointWriterTest, MissingRanksAreRefused) {
  const Manifest m = manifest(2);
  EXPECT_THAT(CheckpointWriter().write({tmp(m), m, {}, {}}).error().message(),
              HasSubstr("0 rank states for a world of 2"));
}
TEST_F(CheckpointWriterTest, CommittedDirectoriesAreNeverWrittenTo) {
  const Manifest m = manifest(1);
  const auto state = rank_state(m, 0);
  const std::string target = path("step_000500");
  fs::create_directory(target);
  EXPECT_EQ(CheckpointWriter().write({target, m, {std::as_bytes(std::span(state))}, {}}).error().code(),
            Errc::invalid_argument);
  EXPECT_TRUE(fs::exists(target));
}
TEST_F(CheckpointWriterTest, AttachmentsNeedAFreePlainName) {
  const Manifest m = manifest(1);
  const auto state = rank_state(m, 0);
  for (const char* name : {"../x", "manifest.json", "rank-00000-of-00001.safetensors", ""}) {
    EXPECT_FALSE(CheckpointWriter().write({tmp(m), m, {std::as_bytes(std::span(state))}, {{name, ""}}})) << name;
  }
}
TEST_F(CheckpointWriterTest, EarlierAttemptIsReplaced) {
  const Manifest m = manifest(2);
  fs::create_directory(tmp(m));
  std::ofstream(tmp(m) + "/left-over") << "x";
  ASSERT_TRUE(write(m));
  EXPECT_FALSE(fs::exists(tmp(m) + "/left-over"));
}
TEST_F(CheckpointWriterTest, EqualStatesGiveEqualBytes) {
  const Manifest m = manifest(2);
  ASSERT_TRUE(write(m));
  fs::rename(tmp(m), path("first"));
  ASSERT_TRUE(write(m));
  for (const auto& entry : fs::directory_iterator(path("first"))) {
    EXPECT_EQ(text_of(entry.path()), text_of(tmp(m) + "/" + entry.path().filename().string()));
  }
}

}  // namespace
}  // namespace troupe::workers

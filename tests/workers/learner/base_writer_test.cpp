// A frozen base on its way from the ranks' shards to the disk and back, into groups of other sizes.
#include "workers/learner/base_writer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "tests/model/shard/training_harness.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/frozen_base.h"
#include "workers/checkpoint/writer.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;

/// The test network with its prologue and every block frozen.
class FrozenChain final : public Network {
 public:
  FrozenChain() : units_(chain_.units()) {
    for (std::size_t u = 0; u + 1 < units_.size(); ++u) units_[u].trainable = false;
  }
  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& params, const Batch& batch) const override { return chain_.prologue(params, batch); }
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override {
    return chain_.block(index, params, carry, batch);
  }
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override {
    return chain_.epilogue(params, carry, batch);
  }

 private:
  const ChainNetwork chain_;
  std::vector<UnitSpec> units_;
};

class BaseWriterTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kFence = 0x100000001;
  const std::shared_ptr<const Network> network_ = std::make_shared<FrozenChain>();

  void TearDown() override { ASSERT_TRUE(arm_faults("")); }
  /// Ranks of a group write their parts and snapshots; returns the committed checkpoint.
  std::string checkpoint_of(int world, at::ScalarType dtype) {
    Manifest manifest;
    manifest.step = world;
    manifest.fence = kFence + static_cast<std::uint64_t>(world);
    manifest.world = world;
    std::vector<std::vector<float>> states(static_cast<std::size_t>(world));
    run_thread_ranks(world, [&](Collective& group) {
      StartedEngine engine(group, network_, {.param_dtype = dtype}, 11);
      ASSERT_TRUE(write_base_part(engine, folder_.path(), manifest.fence));
      auto& state = states[static_cast<std::size_t>(group.rank())];
      state.resize(engine.snapshot_bytes() / sizeof(float));
      engine.snapshot(std::as_writable_bytes(std::span(state)));
      if (group.rank() == 0) manifest.units = manifest_units(engine.units(), engine.layouts());
    });
    manifest.base = close_base(folder_.path(), manifest).value().value();
    CheckpointRequest request{.directory = folder_ / checkpoint_tmp_name(manifest.step, manifest.fence),
                              .manifest = manifest,
                              .attachments = {}};
    for (const auto& state : states) request.ranks.push_back(std::as_bytes(std::span(state)));
    CheckpointWriter().write(request).value();
    return commit_checkpoint(folder_.path(), request.directory, manifest.step).value();
  }

  ScratchFolder folder_;
};

TEST_F(BaseWriterTest, EveryGroupReadsEveryOthersBaseAsItWasHeld) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto want = state_after(1, network_, {.param_dtype = dtype}, 11, [](Engine&) {});
    for (const int written : {1, 2, 3}) {
      const auto reader = CheckpointReader::open(checkpoint_of(written, dtype)).value();
      for (const int world : {1, 2, 3}) {
        const auto got = state_after(world, network_, {.param_dtype = dtype}, 5, [&](Engine& engine) {
          EXPECT_TRUE(engine.load(CheckpointState(*reader, reader->manifest().units)));
        });
        EXPECT_TRUE(got.values == want.values) << written << " ranks, then " << world;
      }
    }
  }
}

TEST_F(BaseWriterTest, ItTakesWhatIsHeldAndTheCheckpointNoneOfIt) {
  const std::string checkpoint = checkpoint_of(2, at::kBFloat16);
  const Manifest manifest = *read_manifest(checkpoint);
  std::int64_t held = 0;
  for (const ManifestUnit& unit : manifest.units) held += unit.in_base ? unit.shard(2) * 2 : 0;
  EXPECT_EQ(snapshot_bytes(manifest), manifest.units.back().shard(2) * 12);
  const std::string file = folder_ / ("base_" + manifest.base + "/" + Manifest::rank_file(1, 2));
  EXPECT_EQ(SafetensorsReader::open(file)->names().size(), manifest.units.size() - 1);
  EXPECT_LT(static_cast<std::int64_t>(fs::file_size(file)) - held, 2048) << "a header beside the values";
}

TEST_F(BaseWriterTest, AFullDiskIsSaidAndTheNextAttemptSucceeds) {
  const auto group = join_thread_group(make_thread_group(1, std::chrono::seconds(20)), 0);
  StartedEngine engine(*group, network_);
  for (const char* fault : {"checkpoint.write:enospc", "checkpoint.fsync:enospc"}) {
    ASSERT_TRUE(arm_faults(fault));
    const auto failed = write_base_part(engine, folder_.path(), kFence);
    EXPECT_EQ(failed.error().code(), Errc::resource_exhausted);
    EXPECT_THAT(failed.error().message(), ::testing::HasSubstr("base.tmp-0000000100000001/rank-00000-of-00001"));
    ASSERT_TRUE(arm_faults(""));
    EXPECT_TRUE(write_base_part(engine, folder_.path(), kFence));
  }
}

}  // namespace
}  // namespace troupe::workers

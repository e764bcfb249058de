#include "env/chunk_frames.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace troupe::env {

namespace {

bool is_picture(const EnvField& field) { return field.dtype == EnvDType::u8 && field.shape.size() == 3; }

Result<void> check(const EnvSpec& spec, const ChunkFrames& frames) {
  const auto& offsets = frames.offsets;
  const bool ascends = std::adjacent_find(offsets.begin(), offsets.end(), std::greater_equal<>()) == offsets.end();
  if (!ascends || offsets.front() < 0 || offsets.back() >= frames.stride) {
    return invalid_argument(
        fmt::format("env.frame_offsets is [{}]; wanted control steps of a chunk, ascending, from 0 to {}",
                    fmt::join(offsets, ", "), frames.stride - 1));
  }
  if (std::ranges::any_of(spec.observation, is_picture)) return {};
  return invalid_argument(fmt::format(
      "env.frame_offsets is set, and {} shows no picture: choose another env.profile, or leave it out", spec.id));
}

/// What all environments of a factory have in common.
struct Rules {
  ChunkFrames frames;
  /// Without and with the frames.
  EnvSpec plain, spec;
};

/// Remembers each lane's frames. The environments write their pictures into memory of this class, all other fields
/// where the caller wants them.
class FramedEnv final : public BatchEnv {
 public:
  FramedEnv(std::shared_ptr<const Rules> rules, std::unique_ptr<BatchEnv> batch)
      : rules_(std::move(rules)), batch_(std::move(batch)) {
    for (std::int64_t lane = 0; lane < batch_->lanes(); ++lane) {
      Lane& made = lanes_.emplace_back();
      for (const EnvField& field : rules_->plain.observation) {
        const auto bytes = static_cast<std::size_t>(rules_->plain.agents * field.bytes());
        made.newest.emplace_back(bytes);
        made.kept.emplace_back(is_picture(field) ? bytes * rules_->frames.offsets.size() : 0);
      }
      made.aim.resize(made.newest.size());
    }
  }

  const EnvSpec& spec() const noexcept override { return rules_->spec; }
  std::int64_t lanes() const noexcept override { return batch_->lanes(); }

  Result<void> reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                     std::span<const StepSlot> out) override {
    slots_.assign(out.begin(), out.end());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lane_of(lanes[i]).steps = 0;
      slots_[i].observation = aimed(lane_of(lanes[i]), out[i]);
    }
    TROUPE_TRY(batch_->reset(lanes, seeds, slots_));
    for (std::size_t i = 0; i < lanes.size(); ++i) show(lane_of(lanes[i]), out[i]);
    return {};
  }

  Result<void> step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                    std::span<const StepSlot> out) override {
    slots_.assign(out.begin(), out.end());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      Lane& lane = lane_of(lanes[i]);
      keep(lane);
      ++lane.steps;
      if (out[i].observation.empty() && kept_at(lane.steps) < 0) continue;
      slots_[i].observation = aimed(lane, out[i]);
    }
    TROUPE_TRY(batch_->step(lanes, actions, slots_));
    for (std::size_t i = 0; i < lanes.size(); ++i) show(lane_of(lanes[i]), out[i]);
    return {};
  }

  Result<void> observe(std::int64_t lane, StepSlot out) override {
    StepSlot slot = out;
    slot.observation = aimed(lane_of(lane), out);
    TROUPE_TRY(batch_->observe(lane, slot));
    show(lane_of(lane), out);
    return {};
  }
  Result<void> render(std::int64_t lane, const std::string& camera, RenderTarget out) override {
    return batch_->render(lane, camera, out);
  }
  Result<void> advise(std::int64_t lane, std::span<float> action) override { return batch_->advise(lane, action); }
  std::uint64_t state_hash(std::int64_t lane) const override { return batch_->state_hash(lane); }

 private:
  struct Lane {
    /// Control steps since the reset.
    std::int64_t steps = 0;
    /// Of each field [P,...]: the present state's, where it was observed.
    std::vector<std::vector<std::byte>> newest;
    /// Of each picture [offsets,P,H,W,C]: frames of the chunk under way; nothing of other fields.
    std::vector<std::vector<std::byte>> kept;
    /// Where the environment writes each field.
    std::vector<std::byte*> aim;
  };

  Lane& lane_of(std::int64_t lane) { return lanes_[static_cast<std::size_t>(lane)]; }

  /// Which offset names the state behind so many control steps; -1: none.
  std::int64_t kept_at(std::int64_t steps) const {
    const auto& offsets = rules_->frames.offsets;
    const auto found = std::ranges::find(offsets, steps % rules_->frames.stride);
    return found == offsets.end() ? -1 : found - offsets.begin();
  }

  std::span<std::byte* const> aimed(Lane& lane, const StepSlot& out) const {
    for (std::size_t f = 0; f < lane.aim.size(); ++f) {
      const bool is_own = out.observation.empty() || is_picture(rules_->plain.observation[f]);
      lane.aim[f] = is_own ? lane.newest[f].data() : out.observation[f];
    }
    return lane.aim;
  }

  /// Before the state changes, and not when it is observed: at a chunk's end the first frame of the next would take the
  /// place of this chunk's.
  void keep(Lane& lane) const {
    const std::int64_t offset = kept_at(lane.steps);
    if (offset < 0) return;
    for (std::size_t f = 0; f < lane.kept.size(); ++f) {
      if (lane.kept[f].empty()) continue;
      const auto to = lane.kept[f].begin() + offset * static_cast<std::int64_t>(lane.newest[f].size());
      std::ranges::copy(lane.newest[f], to);
    }
  }

  void show(const Lane& lane, const StepSlot& out) const {
    if (out.observation.empty()) return;
    const ChunkFrames& frames = rules_->frames;
    const std::int64_t begin = lane.steps == 0 ? 0 : (lane.steps - 1) / frames.stride * frames.stride;
    for (std::size_t f = 0; f < lane.kept.size(); ++f) {
      if (lane.kept[f].empty()) continue;
      const std::int64_t bytes = rules_->plain.observation[f].bytes();
      const auto all = static_cast<std::int64_t>(lane.newest[f].size());
      std::byte* to = out.observation[f];
      for (std::int64_t agent = 0; agent < rules_->plain.agents; ++agent) {
        const std::byte* const newest = lane.newest[f].data() + agent * bytes;
        for (std::size_t i = 0; i < frames.offsets.size(); ++i) {
          const std::byte* const kept = lane.kept[f].data() + static_cast<std::int64_t>(i) * all + agent * bytes;
          to = std::copy_n(begin + frames.offsets[i] < lane.steps ? kept : newest, bytes, to);
        }
        to = std::copy_n(newest, bytes, to);
      }
    }
  }

  const std::shared_ptr<const Rules> rules_;
  const std::unique_ptr<BatchEnv> batch_;
  std::vector<Lane> lanes_;
  std::vector<StepSlot> slots_;  // of the call under way
};

class FramedFactory final : public EnvFactory {
 public:
  FramedFactory(std::shared_ptr<const EnvFactory> factory, const ChunkFrames& frames, EnvSpec spec)
      : factory_(std::move(factory)),
        rules_(std::make_shared<const Rules>(Rules{frames, factory_->spec(), std::move(spec)})) {}

  const EnvSpec& spec() const noexcept override { return rules_->spec; }
  Result<std::unique_ptr<Env>> make() const override {
    TROUPE_ASSIGN(auto batch, make_batch(1));
    return as_env(std::move(batch));
  }
  std::int64_t max_lanes() const noexcept override { return factory_->max_lanes(); }
  bool waits_for_others() const noexcept override { return factory_->waits_for_others(); }
  std::int64_t batches_per_block() const noexcept override { return factory_->batches_per_block(); }
  bool is_making() const override { return factory_->is_making(); }
  bool may_advise() const noexcept override { return factory_->may_advise(); }
  Result<std::unique_ptr<BatchEnv>> make_batch(std::int64_t lanes) const override {
    TROUPE_ASSIGN(auto batch, factory_->make_batch(lanes));
    return std::unique_ptr<BatchEnv>(std::make_unique<FramedEnv>(rules_, std::move(batch)));
  }

 private:
  const std::shared_ptr<const EnvFactory> factory_;
  const std::shared_ptr<const Rules> rules_;
};

}  // namespace

Result<EnvSpec> with_chunk_frames(EnvSpec spec, const ChunkFrames& frames) {
  if (frames.offsets.empty()) return spec;
  TROUPE_TRY(check(spec, frames));
  for (EnvField& field : spec.observation) {
    if (is_picture(field)) field.shape[0] *= frames.count();
  }
  return spec;
}

EnvSpec without_chunk_frames(EnvSpec spec, const ChunkFrames& frames) {
  for (EnvField& field : spec.observation) {
    if (is_picture(field)) field.shape[0] /= frames.count();
  }
  return spec;
}

Result<std::shared_ptr<const EnvFactory>> with_chunk_frames(std::shared_ptr<const EnvFactory> factory,
                                                            const ChunkFrames& frames) {
  if (frames.offsets.empty()) return factory;
  TROUPE_ASSIGN(EnvSpec spec, with_chunk_frames(factory->spec(), frames));
  return std::shared_ptr<const EnvFactory>(
      std::make_shared<FramedFactory>(std::move(factory), frames, std::move(spec)));
}

}  // namespace troupe::env

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "configs/job_config.h"
#include "env/env_spec.h"
#include "model/policy/policy_net.h"
#include "placement/rl_shape.h"

namespace troupe::workers {

/// Types of a trajectory's arrays.
enum class RecordType : std::uint8_t { u8, i32, i64, f32, f64 };
constexpr std::int64_t bytes_of(RecordType type) {
  return type == RecordType::u8 ? 1 : type == RecordType::i32 || type == RecordType::f32 ? 4 : 8;
}

/// One array of a trajectory item: contiguous, row-major, little-endian. Without elements where the job does not need
/// it.
struct RecordField {
  std::string name;
  RecordType type = RecordType::f32;
  std::vector<std::int64_t> shape;
  /// Bytes from the start of the slot; a multiple of 64.
  std::int64_t offset = 0;
  /// 0: the item does not have it.
  std::int64_t bytes = 0;

  bool is_present() const { return bytes > 0; }
};

/// The item that the learner receives (docs/rl.md): T policy steps of the n rows of one block, one for each agent of
/// each of its environments, and the n observations after them. A function of (job, EnvSpec, PolicyNet) alone, so that
/// rollout workers and learner agree without talking.
///
/// Fields lie one after another in the order below, each at a multiple of 64 bytes. Every byte of an item is
/// determined: what has no value (final_* and records of rows that did not end, gaps) holds zeros. Where `valid` is
/// 0 the action was drawn, and did nothing. Time is the first axis: index t of state, images and value is before
/// policy step t, T is after the last.
///
/// Behind the fields lie the pictures of the observations at which episodes ended, where the learner values those:
/// as many as rows of `done` that are not `lost`, in order of (policy step, row), and of each observation its cameras
/// in the order of PolicyShape::images, without gaps. Items of one layout thus differ in size (ended_rows.h), and what
/// of a slot lies behind its item is neither written nor sent.
struct TrajectoryLayout {
  /// T: policy steps of an item, rollout.steps / env.exec_steps.
  std::int64_t calls = 1;
  /// n: rows of a block, the agents of its env.num_envs / env.blocks environments (BlockLayout::rows).
  std::int64_t rows = 1;
  /// P: rows of an environment. Values that are counted once per environment (records of episodes) stand in its first
  /// row.
  std::int64_t agents = 1;
  /// K: actions a policy step, env.chunk.
  std::int64_t chunk = 1;
  /// D: columns of the state; 0 without vectors.
  std::int64_t state_dim = 0;
  /// A: numbers an action; 1 where it is discrete.
  std::int64_t action_dim = 1;
  /// L: log-probabilities a row (PolicyNet::logp_width); 0: none are kept.
  std::int64_t logp_width = 0;
  /// V: values a row (PolicyNet::value_width); 0: no critic.
  std::int64_t value_width = 0;
  /// The learner values the observations at which episodes ended: items hold them (final_state, final_images).
  bool keeps_finals = false;

  /// i64 [8]: TrajectoryHead.
  RecordField head;
  /// f32 [T+1,n,D] as the policy saw it: normalised and clipped with rollout.normalize_obs.
  RecordField state;
  /// u8 or f32 [T+1,n,H,W,C] each, in the order of PolicyShape::images.
  std::vector<RecordField> images;
  /// u8 [T+1,n,bytes] each, in the order of PolicyShape::texts; none where the policy reads no text. A text is that of
  /// its row's episode, so the observation at which an episode ended was told the text of the step before.
  std::vector<RecordField> texts;
  /// f32 [T,n,K*A] in the environment's units; discrete: the index.
  RecordField action;
  /// f32 [T,n,L].
  RecordField logp;
  /// f32 [T+1,n,V].
  RecordField value;
  /// f32 or i64 [T,n,...], in the order of PolicyNet::extras.
  std::vector<RecordField> extras;
  /// f32 [1,n,W] each, in the order of PolicyNet::memory: before policy step 0. Later ones follow from the
  /// observations, and are zero behind every step with `done` or `lost`.
  std::vector<RecordField> policy_memory;
  /// i64 [T,n]: of the weights that acted; -1: uniformly random actions.
  RecordField version;
  /// f32 [T,n,K], as the environment gave it.
  RecordField reward;
  /// u8 [T,n,K].
  RecordField terminated;
  /// u8 [T,n,K]; never with terminated.
  RecordField truncated;
  /// u8 [T,n,K]: the action was executed.
  RecordField valid;
  /// u8 [T,n,K].
  RecordField success;
  /// i32 [T,n]: actions executed.
  RecordField executed;
  /// u8 [T,n]: an episode ended in this policy step.
  RecordField done;
  /// u8 [T,n]: the environment failed and was made anew: the policy step must not be trained.
  RecordField lost;
  /// f32 [T,n,V]: of the observation at which the episode ended, where done.
  RecordField final_value;
  /// f32 [T,n,D]: that observation, where done; only where the learner values it: off-policy, and with vtrace in reset
  /// mode auto.
  RecordField final_state;
  /// u8 [T,n], in first rows: an episode's record follows. As done, and, where episodes end with the rollout (reset
  /// modes episode and fixed), in the last step of every environment that had none.
  RecordField ended;
  /// f64 [T,n], where ended.
  RecordField episode_return;
  /// i32 [T,n] control steps, where ended.
  RecordField episode_length;
  /// u8 [T,n], where ended: bit 0 success at any step, bit 1 at the last.
  RecordField episode_success;
  /// f64 [1+2D]: Moments of the raw state[0..T-1]; with rollout.normalize_obs.
  RecordField observed;
  /// f64 [3]: Moments of the discounted return of every policy step; with rollout.normalize_reward.
  RecordField returned;
  /// Of the fields above, which every item has; a multiple of 64.
  std::int64_t fixed_bytes = 0;
  /// u8 or f32 [H,W,C] each: the pictures of one final observation, with offsets from their first; as final_state.
  std::vector<RecordField> final_images;
  /// Of the pictures of one final observation.
  std::int64_t final_image_bytes = 0;
  /// Of the largest item, in which an episode of every row ends in every policy step, and of a slot; a multiple of 64.
  std::int64_t bytes = 0;

  /// Environments of a block.
  std::int64_t envs() const { return rows / agents; }
  /// True for the first row of an environment, at which values that are counted once per environment are read.
  bool is_first(std::int64_t row) const { return row % agents == 0; }
  /// Every field of the fixed part that is present, in the order of memory.
  std::vector<const RecordField*> fields() const;
};
/// An environment that no policy takes (policy_shape_of) is an invariant violation.
TrajectoryLayout make_trajectory_layout(const JobConfig& job, const EnvSpec& spec, const PolicyNet& net);

/// What an item says about itself: field `head`, i64 each, in this order.
struct TrajectoryHead {
  /// Of the job: position / env.blocks.
  std::int64_t round = 0;
  /// Environments [block * e, (block + 1) * e) for e = TrajectoryLayout::envs().
  std::int64_t block = 0;
  /// Control steps over all environments and calls: at most T e K.
  std::int64_t env_steps = 0;
  /// Transitions (environments times policy steps) of earlier attempts at this item, lost with a simulator.
  std::int64_t given_up = 0;
  /// Least of `version`, random actions aside; -1: all were random.
  std::int64_t min_version = 0;
  /// Greatest of `version`; -1: all were random.
  std::int64_t max_version = 0;
  /// 1: row t = 0 goes on where the block's item of the round before ended (reset mode auto).
  std::int64_t continues = 0;
  std::int64_t reserved = 0;
};

/// One item in memory: typed views by TrajectoryLayout. Byte is std::byte (rollout worker) or const std::byte
/// (learner). Does not own; copyable. A step's view has n rows of what the field holds a row.
template <class Byte>
class TrajectoryViewOf {
 public:
  template <class T>
  using Span = std::span<std::conditional_t<std::is_const_v<Byte>, const T, T>>;

  TrajectoryViewOf() = default;
  TrajectoryViewOf(const TrajectoryLayout& layout, Byte* memory) : layout_(&layout), memory_(memory) {}
  const TrajectoryLayout& layout() const { return *layout_; }
  Byte* memory() const { return memory_; }

  /// All elements of a field. T must be its type.
  template <class T>
  Span<T> all(const RecordField& field) const {
    return {reinterpret_cast<typename Span<T>::pointer>(memory_ + field.offset),
            static_cast<std::size_t>(field.bytes) / sizeof(T)};
  }
  /// The elements of one policy step: of a field whose first axis is T or T+1.
  template <class T>
  Span<T> at(const RecordField& field, std::int64_t call) const {
    if (!field.is_present()) return {};
    const auto count = static_cast<std::size_t>(field.bytes / field.shape[0]) / sizeof(T);
    return all<T>(field).subspan(static_cast<std::size_t>(call) * count, count);
  }
  auto& head() const {
    using Head = std::conditional_t<std::is_const_v<Byte>, const TrajectoryHead, TrajectoryHead>;
    return *reinterpret_cast<Head*>(memory_ + layout_->head.offset);
  }

  Span<float> state(std::int64_t call) const { return at<float>(layout_->state, call); }
  /// Bytes of images, whatever their type.
  Span<std::uint8_t> image(std::size_t index, std::int64_t call) const {
    return at<std::uint8_t>(layout_->images[index], call);
  }
  Span<std::uint8_t> text(std::size_t index, std::int64_t call) const {
    return at<std::uint8_t>(layout_->texts[index], call);
  }
  Span<float> action(std::int64_t call) const { return at<float>(layout_->action, call); }
  Span<float> logp(std::int64_t call) const { return at<float>(layout_->logp, call); }
  Span<float> value(std::int64_t call) const { return at<float>(layout_->value, call); }
  Span<std::int64_t> version(std::int64_t call) const { return at<std::int64_t>(layout_->version, call); }
  Span<float> reward(std::int64_t call) const { return at<float>(layout_->reward, call); }
  Span<std::uint8_t> terminated(std::int64_t call) const { return at<std::uint8_t>(layout_->terminated, call); }
  Span<std::uint8_t> truncated(std::int64_t call) const { return at<std::uint8_t>(layout_->truncated, call); }
  Span<std::uint8_t> valid(std::int64_t call) const { return at<std::uint8_t>(layout_->valid, call); }
  Span<std::uint8_t> success(std::int64_t call) const { return at<std::uint8_t>(layout_->success, call); }
  Span<std::int32_t> executed(std::int64_t call) const { return at<std::int32_t>(layout_->executed, call); }
  Span<std::uint8_t> done(std::int64_t call) const { return at<std::uint8_t>(layout_->done, call); }
  Span<std::uint8_t> lost(std::int64_t call) const { return at<std::uint8_t>(layout_->lost, call); }
  Span<float> final_value(std::int64_t call) const { return at<float>(layout_->final_value, call); }
  Span<float> final_state(std::int64_t call) const { return at<float>(layout_->final_state, call); }
  /// Bytes of a picture of the item's `ended`-th final observation (EndedRows::number).
  Span<std::uint8_t> final_image(std::size_t index, std::int64_t ended) const {
    const RecordField& field = layout_->final_images[index];
    Byte* const from = memory_ + layout_->fixed_bytes + ended * layout_->final_image_bytes + field.offset;
    return {reinterpret_cast<typename Span<std::uint8_t>::pointer>(from), static_cast<std::size_t>(field.bytes)};
  }
  Span<std::uint8_t> ended(std::int64_t call) const { return at<std::uint8_t>(layout_->ended, call); }
  Span<double> episode_return(std::int64_t call) const { return at<double>(layout_->episode_return, call); }
  Span<std::int32_t> episode_length(std::int64_t call) const { return at<std::int32_t>(layout_->episode_length, call); }
  Span<std::uint8_t> episode_success(std::int64_t call) const {
    return at<std::uint8_t>(layout_->episode_success, call);
  }
  /// Moments as workers/rollout/moments.h reads them; empty where the job does not normalise.
  Span<double> observed() const { return all<double>(layout_->observed); }
  Span<double> returned() const { return all<double>(layout_->returned); }

 private:
  const TrajectoryLayout* layout_ = nullptr;
  Byte* memory_ = nullptr;
};
using TrajectoryView = TrajectoryViewOf<std::byte>;
using ConstTrajectoryView = TrajectoryViewOf<const std::byte>;

}  // namespace troupe::workers

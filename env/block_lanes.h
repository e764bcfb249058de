#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/batch_env.h"
#include "env/block_row.h"

namespace troupe::env {

/// `lanes` environments of the factory. Errors: those of EnvFactory::make_batch; internal (it threw, or made another
/// number of lanes).
Result<std::unique_ptr<BatchEnv>> make_lanes(const EnvFactory& factory, std::int64_t lanes);

/// Neighbouring environments of a block that are the lanes of one BatchEnv. Each action of a chunk is one step()
/// call for all lanes whose episodes go on; one reset() call at the end begins new episodes. BlockRow has the rules of
/// a row (outputs, limits, losses). Used by one thread at a time; counters from any.
///
/// A call of the BatchEnv that fails loses the rows in it, and the BatchEnv is thrown away: rows of it that go on,
/// since what failed was a reset or an observation of others, are lost at their next action. A row that is lost for
/// itself (its action, or what its lane wrote) keeps its lane, which the next reset makes as new; a batch of one lane
/// is thrown away.
class BlockLanes {
 public:
  /// Environments first .. first + batch->lanes() - 1; `batch` is a fresh one of the rules' factory.
  BlockLanes(const BlockRules& rules, std::int64_t first, std::unique_ptr<BatchEnv> batch);

  /// As EnvBlock's, for these environments' rows of `out`; `actions` are the block's.
  void reset(std::int64_t episode, const BlockView& out);
  void reset_to_seed(std::uint64_t seed, const BlockView& out);
  void step(const float* actions, const BlockView& out);

  EnvBlock::Counters counters() const;
  /// As EnvBlock's, of environment first + lane.
  const std::string& why_lost(std::int64_t lane) const { return row(lane).why_lost(); }
  std::uint64_t state_hash(std::int64_t lane) const;
  Result<void> render(std::int64_t lane, const std::string& camera, RenderTarget out);
  Result<void> advise(std::int64_t lane, std::span<float> action);

 private:
  /// Which episode rows begin: by default their next one, with its own seed.
  struct Beginning {
    std::optional<std::int64_t> number = {};
    std::optional<std::uint64_t> seed = {};
  };
  using Lanes = std::vector<std::int64_t>;
  /// What a thread fills in one call after another: its own, so that a batch of one row is small.
  struct Scratch;

  BlockRow& row(std::int64_t lane) { return rows_[static_cast<std::size_t>(lane)]; }
  const BlockRow& row(std::int64_t lane) const { return rows_[static_cast<std::size_t>(lane)]; }
  void open(const BlockView& out);
  void close();
  Lanes all_lanes() const;
  /// Begins an episode in each of `lanes`, made anew where they were thrown away. Returns those that are lost.
  Lanes begin(const Lanes& lanes, Beginning which);
  /// Steps the playing lanes with action k of the block's; afterwards the playing lanes are those that go on.
  void play(const float* actions, std::int64_t k);
  /// A step with `action` succeeded; true when the episode is over.
  Result<bool> finish(std::int64_t lane, std::span<const float> action, std::int64_t k);
  void lose(std::int64_t lane, const Error& why, std::int64_t k);
  /// Errors: failed_precondition (the lane is lost).
  Result<void> check_env_of(std::int64_t lane) const;
  /// A row was lost: throws the batch away if it was its only one.
  void forget();
  /// A call of the batch; where it fails the batch is thrown away.
  template <class Call>
  Result<void> call(const Call& to_batch);

  const BlockRules& rules_;
  const std::int64_t first_;
  RowCounters counters_;
  std::vector<BlockRow> rows_;
  std::unique_ptr<BatchEnv> batch_;  // empty when it was thrown away and not made anew yet
  Scratch* scratch_ = nullptr;       // of the thread of the call under way
};

}  // namespace troupe::env

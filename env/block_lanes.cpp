#include "env/block_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <utility>

#include "base/trace.h"

namespace troupe::env {

namespace {

constexpr const char* kThrownAway = "another environment of its batch failed, so the batch was discarded";

/// No exception leaves an environment.
template <class Call>
Result<void> guarded(const Call& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return Error{Errc::internal, fmt::format("threw: {}", e.what())};
  } catch (...) {
    return Error{Errc::internal, "threw something that is no std::exception"};
  }
}

/// Adds the time until its end to a counter.
class Timed {
 public:
  explicit Timed(std::atomic<std::int64_t>& nanoseconds) : nanoseconds_(nanoseconds) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() { RowCounters::add(nanoseconds_, (Clock::now() - start_) / std::chrono::nanoseconds(1)); }

 private:
  using Clock = std::chrono::steady_clock;
  std::atomic<std::int64_t>& nanoseconds_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

Result<std::unique_ptr<BatchEnv>> make_lanes(const EnvFactory& factory, std::int64_t lanes) {
  std::unique_ptr<BatchEnv> batch;
  TROUPE_TRY(guarded([&]() -> Result<void> {
    TROUPE_ASSIGN(batch, factory.make_batch(lanes));
    return {};
  }));
  if (batch->lanes() == lanes) return batch;
  return Error{Errc::internal, fmt::format("{}: a batch of {} lanes was asked for; make_batch() gave one of {}",
                                           factory.spec().id, lanes, batch->lanes())};
}

struct BlockLanes::Scratch {
  // Of a step: lanes whose episodes go on, and lanes that begin an episode at its end.
  Lanes playing, beginning;
  // Of a call of the batch.
  Lanes lanes;
  std::vector<float> actions;
  std::vector<std::uint64_t> seeds;
  std::vector<StepSlot> slots;
};

BlockLanes::BlockLanes(const BlockRules& rules, std::int64_t first, std::unique_ptr<BatchEnv> batch)
    : rules_(rules), first_(first), batch_(std::move(batch)) {
  const auto lanes = static_cast<std::size_t>(batch_->lanes());
  rows_.reserve(lanes);  // they point to themselves
  for (std::size_t lane = 0; lane < lanes; ++lane)
    rows_.emplace_back(rules_, first_ + static_cast<std::int64_t>(lane), counters_);
}

EnvBlock::Counters BlockLanes::counters() const {
  constexpr auto order = std::memory_order_relaxed;
  return {counters_.env_steps.load(order), counters_.resets.load(order), counters_.lost.load(order),
          1e-9 * static_cast<double>(counters_.nanoseconds.load(order))};
}

std::uint64_t BlockLanes::state_hash(std::int64_t lane) const {
  return row(lane).has_env() ? batch_->state_hash(lane) : 0;
}

Result<void> BlockLanes::render(std::int64_t lane, const std::string& camera, RenderTarget out) {
  TROUPE_TRY(check_env_of(lane));
  return batch_->render(lane, camera, out);
}

Result<void> BlockLanes::advise(std::int64_t lane, std::span<float> action) {
  TROUPE_TRY(check_env_of(lane));
  return batch_->advise(lane, action);
}

Result<void> BlockLanes::check_env_of(std::int64_t lane) const {
  if (row(lane).has_env()) return {};
  return Error{Errc::failed_precondition,
               fmt::format("env {} was lost; reset it first", rules_.options.first_env + first_ + lane)};
}

void BlockLanes::reset(std::int64_t episode, const BlockView& out) {
  const Span span("env reset");
  const Timed timed(counters_.nanoseconds);
  open(out);
  for (BlockRow& row : rows_) row.ask(episode);
  const Lanes lost = begin(all_lanes(), {.number = episode});
  begin(lost, {});  // a row whose reset failed tries its next episode, once
  close();
}

void BlockLanes::reset_to_seed(std::uint64_t seed, const BlockView& out) {
  const Span span("env reset");
  const Timed timed(counters_.nanoseconds);
  open(out);
  begin(all_lanes(), {.number = 0, .seed = seed});
  close();
}

void BlockLanes::step(const float* actions, const BlockView& out) {
  const Span span("env step");
  const Timed timed(counters_.nanoseconds);
  open(out);
  Lanes &playing = scratch_->playing, &beginning = scratch_->beginning;
  playing.clear();
  beginning.clear();
  for (std::size_t lane = 0; lane < rows_.size(); ++lane) {
    BlockRow& row = rows_[lane];
    if (row.is_playing()) {
      playing.push_back(static_cast<std::int64_t>(lane));
    } else {
      row.idle();
      if (!row.waits()) beginning.push_back(static_cast<std::int64_t>(lane));
    }
  }
  for (std::int64_t k = 0; k < rules_.options.exec_steps && !playing.empty(); ++k) play(actions, k);
  begin(beginning, {});
  close();
}

void BlockLanes::open(const BlockView& out) {
  static thread_local Scratch scratch;
  scratch_ = &scratch;
  for (BlockRow& row : rows_) row.open(out);
}

void BlockLanes::close() {
  for (BlockRow& row : rows_) row.close();
}

BlockLanes::Lanes BlockLanes::all_lanes() const {
  Lanes all(rows_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

BlockLanes::Lanes BlockLanes::begin(const Lanes& lanes, Beginning which) {
  Lanes lost;
  if (lanes.empty()) return lost;
  if (!batch_) {
    auto made = make_lanes(*rules_.factory, static_cast<std::int64_t>(rows_.size()));
    if (!made) {
      const Error why = made.error().with("could not be made");
      for (const std::int64_t lane : lanes) row(lane).fail_to_begin(why);
      return lanes;
    }
    batch_ = std::move(*made);
  }
  scratch_->seeds.clear();
  scratch_->slots.clear();
  for (const std::int64_t lane : lanes) {
    const std::int64_t number = which.number.value_or(row(lane).episode() + 1);
    scratch_->seeds.push_back(which.seed.value_or(row(lane).seed_of(number)));
    scratch_->slots.push_back(row(lane).begin(number, !which.seed));
  }
  const auto reset = call([&] { return batch_->reset(lanes, scratch_->seeds, scratch_->slots); });
  for (const std::int64_t lane : lanes) {
    const auto begun = reset ? row(lane).has_begun() : reset;
    if (begun) continue;
    row(lane).fail_to_begin(begun.error());
    forget();
    lost.push_back(lane);
  }
  return lost;
}

void BlockLanes::play(const float* actions, std::int64_t k) {
  const EnvBlock::Options& options = rules_.options;
  const EnvSpec& spec = rules_.factory->spec();
  const auto size = static_cast<std::size_t>(spec.action_numbers());
  Scratch& in = *scratch_;
  in.lanes.clear();
  in.slots.clear();
  in.actions.resize(in.playing.size() * size);
  for (const std::int64_t lane : in.playing) {
    const float* wanted = actions + ((first_ + lane) * spec.agents * options.chunk + k) * spec.action.size;
    if (const auto admitted = row(lane).admit(wanted, in.actions.data() + in.lanes.size() * size); !admitted) {
      lose(lane, admitted.error(), k);
    } else if (!row(lane).has_env()) {
      lose(lane, {Errc::aborted, kThrownAway}, k);
    } else {
      in.lanes.push_back(lane);
      in.slots.push_back(row(lane).slot(k + 1 == options.exec_steps));
    }
  }
  in.playing.clear();
  if (in.lanes.empty()) return;
  in.actions.resize(in.lanes.size() * size);
  if (const auto stepped = call([&] { return batch_->step(in.lanes, in.actions, in.slots); }); !stepped) {
    for (const std::int64_t lane : in.lanes) lose(lane, stepped.error(), k);
    return;
  }
  for (std::size_t i = 0; i < in.lanes.size(); ++i) {
    const std::int64_t lane = in.lanes[i];
    const auto over = finish(lane, {in.actions.data() + i * size, size}, k);
    if (!over) {
      lose(lane, over.error(), k);
    } else if (*over) {
      row(lane).end();
      if (rules_.is_same_step()) in.beginning.push_back(lane);
    } else {
      in.playing.push_back(lane);
    }
  }
}

Result<bool> BlockLanes::finish(std::int64_t lane, std::span<const float> action, std::int64_t k) {
  if (row(lane).lacks_observation())
    TROUPE_TRY(call([&] { return batch_->observe(lane, row(lane).observation_slot()); }));
  return row(lane).accept(action, k);
}

void BlockLanes::lose(std::int64_t lane, const Error& why, std::int64_t k) {
  row(lane).lose(why, k);
  forget();
  if (rules_.is_same_step()) scratch_->beginning.push_back(lane);
}

void BlockLanes::forget() {
  if (rows_.size() == 1) batch_.reset();
}

template <class Call>
Result<void> BlockLanes::call(const Call& to_batch) {
  if (!batch_) return Error{Errc::aborted, kThrownAway};
  auto result = guarded(to_batch);
  if (result) return result;
  batch_.reset();
  for (BlockRow& row : rows_) row.lose_env();
  return result;
}

}  // namespace troupe::env

#include "env/env_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/stopwatch.h"

namespace troupe::env {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPage = 4096, kHugePage = 2 << 20;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, FreeMemory>;

/// Zeroed, at the beginning of a page; of huge pages where it fills any.
Memory make_memory(std::int64_t bytes) {
  const std::size_t page = bytes >= static_cast<std::int64_t>(kHugePage) ? kHugePage : kPage;
  const std::size_t size = (static_cast<std::size_t>(bytes) + page - 1) / page * page;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(page, size)));
  if (!memory) throw std::bad_alloc();
  if (page == kHugePage) madvise(memory.get(), size, MADV_HUGEPAGE);
  std::memset(memory.get(), 0, size);
  return memory;
}

}  // namespace

/// The buffers of a pool and the layout by which they are read; kept by the pool and every handle.
struct EnvPool::Block::Buffers {
  explicit Buffers(BlockLayout l, std::int64_t most_buffers)
      : layout(std::move(l)), most(static_cast<std::size_t>(most_buffers)) {
    all.reserve(most);
    free.reserve(most);
  }

  std::byte* take() {
    const std::lock_guard lock(mutex);
    if (free.empty()) {
      if (all.size() == most) return nullptr;
      all.push_back(make_memory(layout.bytes));
      return all.back().get();
    }
    std::byte* memory = free.back();
    free.pop_back();
    return memory;
  }
  void give(std::byte* memory) {
    const std::lock_guard lock(mutex);
    free.push_back(memory);
  }

  const BlockLayout layout;
  const std::size_t most;
  std::mutex mutex;
  std::vector<Memory> all;
  std::vector<std::byte*> free;
};

void EnvPool::Block::GiveBack::operator()(std::byte* memory) const { buffers->give(memory); }

struct EnvPool::State {
  /// What a group is in the midst of. `view` is set from sending to receiving.
  struct Group {
    std::unique_ptr<EnvBlock> block;
    BlockView view;
    bool was_reset = false;
    std::int64_t policy_version = -1;
    std::uint64_t sequence = 0;
    /// recv() has given up its step.
    bool is_late = false;
  };

  std::shared_ptr<const EnvFactory> factory;
  Options options;
  std::vector<Group> groups;
  std::shared_ptr<Block::Buffers> buffers;
  std::uint64_t sent = 0;
  std::int64_t received = 0;
  double wait_seconds = 0;

  std::mutex mutex;
  std::condition_variable finished_one;
  std::vector<std::int64_t> finished;  // groups, in the order in which they finished
  std::unique_ptr<Executor> executor;  // last: goes first, and waits for what still calls the members above

  Error no_group(std::int64_t group) const {
    return {Errc::invalid_argument, fmt::format("{} is no group of this pool of {}; wanted 0 to {}", group,
                                                factory->spec().id, groups.size() - 1)};
  }
  bool has(std::int64_t group) const { return group >= 0 && group < static_cast<std::int64_t>(groups.size()); }

  /// Takes a buffer for the next step of a group.
  Result<Group*> begin(std::int64_t index, std::int64_t policy_version) {
    if (!has(index)) return no_group(index);
    Group& group = groups[static_cast<std::size_t>(index)];
    if (group.view.memory != nullptr) {
      return Error{Errc::failed_precondition,
                   fmt::format("group {} was sent a step that has not been received", index)};
    }
    std::byte* memory = buffers->take();
    if (memory == nullptr) {
      return Error{
          Errc::resource_exhausted,
          fmt::format("all {} buffers of the pool are held; release blocks or raise max_blocks", buffers->most)};
    }
    group.view = {&buffers->layout, memory};
    group.policy_version = policy_version;
    group.sequence = sent++;
    return &group;
  }
  bool is_finished(std::int64_t group) {
    const std::lock_guard lock(mutex);
    return std::find(finished.begin(), finished.end(), group) != finished.end();
  }
  void finish(std::int64_t group) {
    const std::lock_guard lock(mutex);
    finished.push_back(group);
    finished_one.notify_one();
  }
};

EnvPool::EnvPool(std::unique_ptr<State> state) : state_(std::move(state)) {}
EnvPool::~EnvPool() {
  const auto& groups = state_->groups;
  if (std::none_of(groups.begin(), groups.end(), [](const State::Group& group) { return group.is_late; })) return;
  static std::mutex mutex;
  static auto* const left_behind = new std::vector<std::unique_ptr<State>>();  // never destroyed
  const std::lock_guard lock(mutex);
  left_behind->push_back(std::move(state_));
}

Result<std::unique_ptr<EnvPool>> EnvPool::make(std::shared_ptr<const EnvFactory> factory, const Options& options) {
  if (options.groups < 1 || options.num_envs < 1 || options.num_envs % options.groups != 0) {
    return invalid_argument(
        fmt::format("{} environments in {} groups; wanted groups of one size", options.num_envs, options.groups));
  }
  if (options.threads < 1)
    return invalid_argument(fmt::format("env.threads is {}; wanted at least 1", options.threads));
  auto state = std::make_unique<State>();
  state->factory = std::move(factory);
  state->options = options;
  state->executor = Executor::make({.threads = options.threads, .pin = options.pin});
  const std::int64_t envs = options.num_envs / options.groups;
  for (std::int64_t g = 0; g < options.groups; ++g) {
    const EnvBlock::Options block{.first_env = options.first_env + g * envs,
                                  .envs = envs,
                                  .chunk = options.chunk,
                                  .exec_steps = options.exec_steps,
                                  .reset_mode = options.reset_mode,
                                  .group_size = options.group_size,
                                  .max_steps = options.max_steps,
                                  .stagger = options.stagger,
                                  .seed = options.seed};
    State::Group group;
    TROUPE_ASSIGN(group.block, EnvBlock::make(state->factory, block, *state->executor));
    state->groups.push_back(std::move(group));
  }
  state->finished.reserve(state->groups.size());
  const std::int64_t most = options.max_blocks > 0 ? options.max_blocks : 2 * (options.groups + 2);
  state->buffers = std::make_shared<Block::Buffers>(state->groups[0].block->layout(), most);
  return std::unique_ptr<EnvPool>(new EnvPool(std::move(state)));
}

const EnvSpec& EnvPool::spec() const { return state_->factory->spec(); }
const BlockLayout& EnvPool::layout() const { return state_->buffers->layout; }
std::int64_t EnvPool::groups() const { return static_cast<std::int64_t>(state_->groups.size()); }
std::int64_t EnvPool::rows() const { return layout().rows; }
std::int64_t EnvPool::envs() const { return rows() / layout().agents; }

Result<void> EnvPool::reset(std::int64_t index, std::int64_t episode) {
  TROUPE_ASSIGN(State::Group * group, state_->begin(index, -1));
  group->was_reset = true;
  group->block->reset(episode, group->view, [state = state_.get(), index] { state->finish(index); });
  return {};
}

Result<void> EnvPool::reset_to_seed(std::int64_t index, std::uint64_t seed) {
  const ResetMode mode = state_->options.reset_mode;
  if (mode != ResetMode::episode && mode != ResetMode::fixed) {
    return Error{Errc::failed_precondition,
                 "environments that begin again by themselves have the seeds of their options; make the pool with "
                 "ResetMode::episode or fixed"};
  }
  TROUPE_ASSIGN(State::Group * group, state_->begin(index, -1));
  group->was_reset = true;
  group->block->reset_to_seed(seed, group->view, [state = state_.get(), index] { state->finish(index); });
  return {};
}

Result<void> EnvPool::send(std::int64_t index, std::span<const float> actions, std::int64_t policy_version) {
  return send(index, actions, policy_version, Executor::Caller::leaves);
}

Result<void> EnvPool::send(std::int64_t index, std::span<const float> actions, std::int64_t policy_version,
                           Executor::Caller caller) {
  if (!state_->has(index)) return state_->no_group(index);
  if (!state_->groups[static_cast<std::size_t>(index)].was_reset) {
    return Error{Errc::failed_precondition, fmt::format("group {} was never reset", index)};
  }
  const auto wanted = static_cast<std::size_t>(rows() * layout().chunk * spec().action.size);
  if (actions.size() != wanted) {
    return invalid_argument(fmt::format("{} numbers of actions for {}; wanted {} ({} rows x {} actions x {} numbers)",
                                        actions.size(), spec().id, wanted, rows(), layout().chunk, spec().action.size));
  }
  TROUPE_ASSIGN(State::Group * group, state_->begin(index, policy_version));
  group->block->step(
      actions, group->view, [state = state_.get(), index] { state->finish(index); }, caller);
  return {};
}

Result<EnvPool::Block> EnvPool::recv(std::int64_t wanted, std::chrono::nanoseconds timeout) {
  State& s = *state_;
  if (wanted != any_group && !s.has(wanted)) return s.no_group(wanted);
  const auto under_way = [&](const State::Group& g) { return g.view.memory != nullptr; };
  if (wanted == any_group ? std::none_of(s.groups.begin(), s.groups.end(), under_way)
                          : !under_way(s.groups[static_cast<std::size_t>(wanted)])) {
    return Error{Errc::failed_precondition, "nothing was sent that could be received"};
  }
  const auto start = Clock::now();
  std::int64_t index = 0;
  {
    std::unique_lock lock(s.mutex);
    auto found = s.finished.end();
    const auto ready = [&] {
      found = wanted == any_group ? s.finished.begin() : std::find(s.finished.begin(), s.finished.end(), wanted);
      return found != s.finished.end();
    };
    if (!s.finished_one.wait_for(lock, timeout, ready)) {
      for (std::size_t g = 0; g < s.groups.size(); ++g) {
        const bool is_asked = wanted == any_group || static_cast<std::size_t>(wanted) == g;
        if (is_asked && under_way(s.groups[g])) s.groups[g].is_late = true;
      }
      return Error{
          Errc::deadline_exceeded,
          fmt::format("{} did not finish a step of {} in {:.3g} s", spec().id,
                      wanted == any_group ? "any group" : fmt::format("group {}", wanted), Seconds(timeout).count())};
    }
    index = *found;
    s.finished.erase(found);
  }
  s.wait_seconds += seconds_since(start);
  ++s.received;
  State::Group& group = s.groups[static_cast<std::size_t>(index)];
  Block block;
  block.view_ = std::exchange(group.view, {});
  group.is_late = false;
  block.memory_ = {block.view_.memory, {s.buffers}};
  block.group_ = index;
  block.first_env_ = s.options.first_env + index * envs();
  block.policy_version_ = group.policy_version;
  block.sequence_ = group.sequence;
  return block;
}

Result<EnvPool::Block> EnvPool::step(std::int64_t group, std::span<const float> actions, std::int64_t policy_version,
                                     std::chrono::nanoseconds timeout) {
  TROUPE_TRY(send(group, actions, policy_version, Executor::Caller::helps));
  state_->executor->help([&] { return state_->is_finished(group); });
  return recv(group, timeout);
}

EnvPool::Counters EnvPool::counters() const {
  Counters sum;
  for (const State::Group& group : state_->groups) sum += group.block->counters();
  sum.blocks = state_->received;
  sum.idle_seconds = state_->executor->idle_seconds();
  sum.wait_seconds = state_->wait_seconds;
  return sum;
}

EnvBlock& EnvPool::block_of(std::int64_t i) const {
  return *state_->groups.at(static_cast<std::size_t>(i / envs())).block;
}

const std::string& EnvPool::why_lost(std::int64_t i) const { return block_of(i).why_lost(i % envs()); }

std::uint64_t EnvPool::state_hash(std::int64_t i) const { return block_of(i).state_hash(i % envs()); }

Result<void> EnvPool::render(std::int64_t i, const std::string& camera, RenderTarget out) {
  return block_of(i).render(i % envs(), camera, out);
}

Result<void> EnvPool::advise(std::int64_t i, std::span<float> action) { return block_of(i).advise(i % envs(), action); }

}  // namespace troupe::env

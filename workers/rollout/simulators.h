#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "env/env_block.h"
#include "workers/rollout/block_requests.h"

namespace troupe::workers {

/// Who simulates a rollout worker's blocks, as that worker sees it: slots with room for a block's transition,
/// simulators by name that take requests, and answers, of which RolloutWorker::answered is told. A slot is free, out
/// with a request, or filled by its answer. One thread.
class Simulators {
 public:
  virtual ~Simulators() = default;
  virtual std::int64_t num_slots() const = 0;
  virtual std::int64_t free_slots() const = 0;
  /// Asks for a block's next observation. Its answer has this credit and lies in credit.slot, which is not out; with
  /// kAnySlot in a free one. Returns the slot. What `request` views is copied or used before the return. Errors:
  /// not_found (no such simulator, or it has left), resource_exhausted (no slot is free).
  virtual Result<std::uint32_t> ask(const std::string& simulator, const Credit& credit,
                                    const BlockRequest& request) = 0;
  /// The bytes of a filled slot, the caller's until it asks with it or releases it.
  virtual std::byte* slot(std::uint32_t index) = 0;
  /// Makes a filled slot free.
  virtual void release(std::uint32_t slot) = 0;

  /// Whether step() has anything to do: requests that nobody else carries out.
  virtual bool has_steps() const { return false; }
  /// Carries them out and returns the answers, in the order of asking; valid until the next call.
  virtual std::span<const Item> step() { return {}; }
  /// What the steps that step() has carried out so far have added to their blocks' counters; resets that were asked for
  /// are not among them.
  virtual EnvBlock::Counters stepped() const { return {}; }
};

}  // namespace troupe::workers

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "comm/bridge/bridge_hub.h"
#include "env/env_spec.h"

namespace troupe::workers {

/// The error of a malformed answer: "the worker's answer " and what is wrong.
Error broken_answer(const std::string& what);
/// The array `name` of a map in an answer. Errors: data_loss (none there, or of another dtype or shape).
Result<const comm::NdArray*> array_in(const comm::WireMap& map, std::string_view name, std::string_view dtype,
                                      const std::vector<std::int64_t>& shape);

/// Arrays that questions to the worker of one lease and its answers carry, a row for each lane asked: in the messages,
/// or, with a worker of this machine, in memory that both have mapped; messages then carry the number of rows alone
/// (docs/bridge.md#messages). One question at a time.
class LeaseArrays {
 public:
  /// Index of an array. The observation's fields follow from `observation` on; with several agents, alive() is the
  /// last.
  enum Part : std::size_t { rows, seeds, actions, reward, terminated, truncated, success, info, observation };
  /// Index of the array that says which agents are alive; only with several agents.
  std::size_t alive() const { return kinds_.size() - 1; }

  /// With memory where `shares_memory` and the worker can; why it cannot is logged.
  LeaseArrays(comm::BridgeLease& lease, const EnvSpec& spec, std::int64_t lanes, bool shares_memory,
              std::chrono::milliseconds patience);

  /// A question about these lanes.
  comm::WireMap question(std::span<const std::int64_t> lanes);
  /// Adds an array with a row for each lane to the question.
  void add(comm::WireMap& question, Part part, std::span<const std::byte> values);

  /// What an answer has as `part`, a row for each of `count` lanes; valid until the next question and as long as the
  /// answer. Errors: data_loss (it lacks that array, or has another one in its place).
  Result<std::span<const std::byte>> in(const comm::WireMap& answer, std::size_t part, std::int64_t count) const;

 private:
  struct Kind {
    std::string name;
    const char* dtype;
    /// Of one row.
    std::vector<std::int64_t> shape;
    std::int64_t row_bytes = 0;
    /// Part of the observation.
    bool is_observed = false;
    /// In the memory.
    std::int64_t offset = 0;
  };

  void add_kind(std::string name, const char* dtype, std::vector<std::int64_t> shape, std::int64_t item_bytes,
                bool is_observed = false);
  Result<comm::Arena> share(comm::BridgeLease& lease, std::chrono::milliseconds patience);
  std::span<std::byte> memory_of(std::size_t part, std::int64_t count) const;

  const std::int64_t lanes_;
  std::vector<Kind> kinds_;
  std::optional<comm::Arena> memory_;
};

}  // namespace troupe::workers

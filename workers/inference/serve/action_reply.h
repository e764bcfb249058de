#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "comm/serve/wire_value.h"
#include "workers/inference/policy/policy.h"

namespace troupe::workers {

/// In which form a reply carries actions (`--action-key`).
enum class ActionForm : std::uint8_t {
  /// One bare array f32 [rows, width].
  array,
  /// A map with that array under `actions`
  actions,
  /// A map with an array f32 [rows, width of the key] under `action.<key>`
  keys,
};

/// "" gives `fallback`. Errors: invalid_argument (another word).
Result<ActionForm> parse_action_key(const std::string& text, ActionForm fallback);

/// Whether a chunk is what PolicyInfo promises: rows, width, every value finite. A robot never gets anything else, and
/// never zeros in place of a key. Errors: internal (what was found, at which row and key).
Result<void> check_chunk(const ActionChunk& chunk, const PolicyInfo& info);

/// The chunk as f32 [rows, width].
NdArray whole_array(const ActionChunk& chunk);

/// The chunk cut by PolicyInfo::action: f32 [rows, width of the key] under `prefix` + the key's short name.
WireMap arrays_by_key(const ActionChunk& chunk, const PolicyInfo& info, const std::string& prefix);

/// The reply in that form.
WireValue action_reply(const ActionChunk& chunk, const PolicyInfo& info, ActionForm form);

}  // namespace troupe::workers

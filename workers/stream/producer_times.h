#pragma once

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::workers {

/// Kind of the Event by which a producer (decoder, encoder, simulator, rollout worker) tells the controller how it
/// spent its time since the one before. The controller turns it into the metrics data/producer_idle and
/// time/ROLE/idle.
inline constexpr std::string_view kProducerTimes = "producer_times";

/// The event's text: "IDLE BUSY", seconds with six decimals. Idle: no consumer gave credit. Busy: making items.
inline std::string producer_times_text(double idle_seconds, double busy_seconds) {
  return fmt::format("{:.6f} {:.6f}", idle_seconds, busy_seconds);
}

/// Reads that text: idle and busy seconds. Nothing for any other text, negative numbers and NaN included. Never
/// throws: the text came over the wire.
inline std::optional<std::pair<double, double>> parse_producer_times(std::string_view text) {
  std::pair<double, double> times;
  const char* const end = text.data() + text.size();
  const auto idle = std::from_chars(text.data(), end, times.first);
  if (idle.ec != std::errc() || idle.ptr == end || *idle.ptr != ' ') return {};
  const auto busy = std::from_chars(idle.ptr + 1, end, times.second);
  if (busy.ec != std::errc() || busy.ptr != end || !(times.first >= 0) || !(times.second >= 0)) return {};
  return times;
}

}  // namespace troupe::workers

#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "comm/control/message_codec.h"

namespace troupe::comm {

/// Gives every member of a message a value that differs from its default and from its neighbours'.
struct SampleFiller {
  std::int64_t next = 3;
  void operator()(std::uint64_t, std::int64_t& v) { v = 1000 * next++; }
  void operator()(std::uint64_t, std::uint64_t& v) {
    v = (std::uint64_t{1} << 63) + static_cast<std::uint64_t>(next++);
  }
  void operator()(std::uint64_t, double& v) { v = 0.25 + static_cast<double>(next++); }
  void operator()(std::uint64_t, bool& v) { v = !v; }
  void operator()(std::uint64_t key, std::string& v) { v = "text " + std::to_string(key) + " \u00e9\u4e16\U0001F916"; }
  void operator()(std::uint64_t, std::vector<std::string>& v) { v = {"decoder/0#1", "", "shm:///proc/7/fd/9"}; }
  void operator()(std::uint64_t, std::vector<std::int64_t>& v) { v = {-1, 0, 127, 128, 1LL << 40}; }
  void operator()(std::uint64_t, std::map<std::string, std::int64_t>& v) { v = {{"shards", 1LL << 33}, {"slots", -5}}; }
  void operator()(std::uint64_t, std::map<std::string, double>& v) {
    v = {{"train/loss", 0.125}, {"time/stall", 3e-9}};
  }
  void operator()(std::uint64_t, std::map<std::string, std::string>& v) {
    v = {{"OMP_NUM_THREADS", "2"}, {"LANG", "C"}};
  }
};

template <class T>
Message filled() {
  T message;
  SampleFiller filler;
  message.fields(filler);
  return message;
}

template <std::size_t... I>
std::vector<Message> sample_messages(std::index_sequence<I...>) {
  return {filled<std::variant_alternative_t<I, Message>>()...};
}
/// One filled instance of every message.
inline std::vector<Message> sample_messages() {
  return sample_messages(std::make_index_sequence<std::variant_size_v<Message>>{});
}

inline std::vector<std::byte> to_bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace troupe::comm

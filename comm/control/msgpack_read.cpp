#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <msgpack/null_visitor.hpp>
#include <msgpack/unpack.hpp>
#include <string_view>

#include "base/utf8.h"
#include "comm/control/msgpack_io.h"

namespace troupe::comm {

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

/// Receives the parser's events. The outer map has depth 1, a list or map member depth 2; what lies in an unknown key
/// is only checked.
class MapVisitor : public msgpack::null_visitor {
 public:
  MapVisitor(std::span<const std::byte> bytes, std::span<Field> fields, const WireLimits& limits)
      : size_(bytes.size()), fields_(fields), limits_(limits) {}

  const std::string& error() const { return error_; }
  bool is_complete() const { return complete_; }

  bool visit_nil() {
    return scalar("nil", [](auto&) { return false; });
  }
  bool visit_boolean(bool value) {
    return scalar("a boolean", Overloaded{[&](bool* to) { return *to = value, true; }, [](auto) { return false; }});
  }
  bool visit_positive_integer(std::uint64_t value) {
    if (at_outer_key()) return outer_key(value);
    return scalar(
        "an integer",
        Overloaded{
            [&](std::uint64_t* to) { return *to = value, true; },
            [&](std::int64_t* to) { return fits(value) && (*to = static_cast<std::int64_t>(value), true); },
            [&](std::vector<std::int64_t>* to) {
              return in_member() && fits(value) && (to->push_back(static_cast<std::int64_t>(value)), true);
            },
            [&](std::map<std::string, std::int64_t>* to) {
              return in_member() && fits(value) && insert(*to, static_cast<std::int64_t>(value));
            },
            // A writer may shorten a whole number in a float field; msgpack-cxx does.
            [&](double* to) { return *to = static_cast<double>(value), true; },
            [&](std::map<std::string, double>* to) { return in_member() && insert(*to, static_cast<double>(value)); },
            [](auto) { return false; }});
  }
  bool visit_negative_integer(std::int64_t value) {
    if (value >= 0) return visit_positive_integer(static_cast<std::uint64_t>(value));
    return scalar("a negative integer",
                  Overloaded{[&](std::int64_t* to) { return *to = value, true; },
                             [&](std::vector<std::int64_t>* to) { return in_member() && (to->push_back(value), true); },
                             [&](std::map<std::string, std::int64_t>* to) { return in_member() && insert(*to, value); },
                             [&](double* to) { return *to = static_cast<double>(value), true; },
                             [&](std::map<std::string, double>* to) {
                               return in_member() && insert(*to, static_cast<double>(value));
                             },
                             [](auto) { return false; }});
  }
  bool visit_float32(float value) { return visit_float64(static_cast<double>(value)); }
  bool visit_float64(double value) {
    return scalar("a float",
                  Overloaded{[&](double* to) { return std::isfinite(value) && (*to = value, true); },
                             [&](std::map<std::string, double>* to) { return in_member() && insert(*to, value); },
                             [](auto) { return false; }});
  }
  bool visit_str(const char* data, std::uint32_t size) {
    const std::string_view text(data, size);
    if (size > limits_.str) return fail(fmt::format("a string of {} bytes; at most {} are taken", size, limits_.str));
    if (!is_utf8(text)) return fail("a string that is not UTF-8");
    if (depth_ == 2 && in_map_key_ && field_ != nullptr) {
      member_key_ = text;
      return true;
    }
    return scalar(
        "a string",
        Overloaded{
            [&](std::string* to) { return to->assign(text), true; },
            [&](std::vector<std::string>* to) { return in_member() && (to->emplace_back(text), true); },
            [&](std::map<std::string, std::string>* to) { return in_member() && insert(*to, std::string(text)); },
            [](auto) { return false; }});
  }
  bool visit_bin(const char* data, std::uint32_t size) {
    if (size > limits_.bin) return fail(fmt::format("{} raw bytes; at most {} are taken", size, limits_.bin));
    return scalar("raw bytes", Overloaded{[&](std::array<std::uint8_t, 16>* to) {
                                            if (size != to->size()) return false;
                                            std::memcpy(to->data(), data, size);
                                            return true;
                                          },
                                          [](auto) { return false; }});
  }
  bool visit_ext(const char*, std::uint32_t) { return fail("an extension type"); }

  bool start_array(std::uint32_t count) {
    if (count > limits_.array) return fail(fmt::format("an array of {}; at most {} are taken", count, limits_.array));
    if (count > size_) return fail(fmt::format("an array of {} in a message of {} bytes", count, size_));
    if (!open("an array")) return false;
    if (depth_ != 2 || field_ == nullptr) return true;
    return std::visit(Overloaded{[&](std::vector<std::string>* to) { return to->clear(), true; },
                                 [&](std::vector<std::int64_t>* to) { return to->clear(), to->reserve(count), true; },
                                 [&](auto) { return wrong_type("an array"); }},
                      field_->target);
  }
  bool end_array() { return --depth_, true; }
  bool start_map(std::uint32_t count) {
    if (count > limits_.map) return fail(fmt::format("a map of {} pairs; at most {} are taken", count, limits_.map));
    if (2 * std::uint64_t{count} > size_)
      return fail(fmt::format("a map of {} pairs in a message of {} bytes", count, size_));
    if (!open("a map")) return false;
    if (depth_ == 1) {
      seen_.reserve(count);
      return true;
    }
    if (depth_ != 2 || field_ == nullptr) return true;
    return std::visit(Overloaded{[&](std::map<std::string, std::int64_t>* to) { return to->clear(), true; },
                                 [&](std::map<std::string, double>* to) { return to->clear(), true; },
                                 [&](std::map<std::string, std::string>* to) { return to->clear(), true; },
                                 [&](auto) { return wrong_type("a map"); }},
                      field_->target);
  }
  bool start_map_key() { return in_map_key_ = true, true; }
  bool end_map_key() { return in_map_key_ = false, true; }
  bool end_map() {
    if (--depth_ == 0) complete_ = true;
    in_map_key_ = false;
    return true;
  }

  void parse_error(std::size_t, std::size_t offset) {
    fail(fmt::format("a byte at {} that is not MessagePack", offset));
  }
  void insufficient_bytes(std::size_t, std::size_t offset) {
    fail(fmt::format("an end in the middle of a value, after {} bytes", offset));
  }

 private:
  static bool fits(std::uint64_t value) {
    return value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  }
  bool at_outer_key() const { return depth_ == 1 && in_map_key_; }
  bool in_member() const { return depth_ == 2; }

  bool fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }
  bool wrong_type(std::string_view found) {
    return fail(fmt::format("{} where key {} has another type or range", found, key_));
  }

  bool open(std::string_view what) {
    if (in_map_key_) return fail(fmt::format("{} as a key", what));
    if (depth_ == 0 && what != "a map") return fail(fmt::format("{} instead of a map", what));
    if (depth_ >= 2 && field_ != nullptr) return wrong_type(what);  // members are flat lists and maps
    if (++depth_ > limits_.depth) return fail(fmt::format("more than {} containers inside each other", limits_.depth));
    return true;
  }

  bool outer_key(std::uint64_t key) {
    for (const std::uint64_t other : seen_) {
      if (other == key) return fail(fmt::format("key {} twice", key));
    }
    seen_.push_back(key);
    key_ = key;
    field_ = nullptr;
    for (Field& field : fields_) {
      if (field.key == key) field_ = &field;
    }
    if (field_ != nullptr) field_->present = true;
    return true;
  }

  template <class Map, class Value>
  bool insert(Map& map, Value value) {
    if (map.emplace(std::string(member_key_), std::move(value)).second) return true;
    return fail(fmt::format("a name twice in the map of key {}", key_));
  }

  template <class Store>
  bool scalar(std::string_view what, Store&& store) {
    if (depth_ == 0) return fail(fmt::format("{} instead of a map", what));
    if (at_outer_key()) return fail(fmt::format("{} as a key; keys are unsigned integers", what));
    if (field_ == nullptr) return true;
    if (in_map_key_) return fail(fmt::format("{} as a name in the map of key {}", what, key_));
    return std::visit(store, field_->target) || wrong_type(what);
  }

  std::size_t size_;
  std::span<Field> fields_;
  const WireLimits& limits_;
  std::vector<std::uint64_t> seen_;
  Field* field_ = nullptr;  // of the outer key whose value is being read; null: unknown key
  std::uint64_t key_ = 0;
  std::string_view member_key_;  // into the input
  std::uint32_t depth_ = 0;
  bool in_map_key_ = false;
  bool complete_ = false;
  std::string error_;
};

}  // namespace

Result<void> read_map(std::span<const std::byte> bytes, std::span<Field> fields, const WireLimits& limits) {
  for (Field& field : fields) field.present = false;
  MapVisitor visitor(bytes, fields, limits);
  std::size_t offset = 0;
  try {
    const bool parsed = msgpack::parse(reinterpret_cast<const char*>(bytes.data()), bytes.size(), offset, visitor);
    if (!parsed || !visitor.is_complete() || !visitor.error().empty()) {
      const std::string& why = visitor.error();
      return Error{Errc::invalid_argument,
                   fmt::format("malformed message: {}", why.empty() ? "not a MessagePack map" : why)};
    }
  } catch (const std::exception& e) {
    return Error{Errc::invalid_argument, fmt::format("malformed message: {}", e.what())};
  }
  if (offset != bytes.size()) {
    return Error{Errc::invalid_argument,
                 fmt::format("malformed message: {} bytes after the map", bytes.size() - offset)};
  }
  return {};
}

}  // namespace troupe::comm

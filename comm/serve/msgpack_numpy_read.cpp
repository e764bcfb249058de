#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <msgpack/null_visitor.hpp>
#include <msgpack/unpack.hpp>
#include <optional>
#include <string_view>

#include "base/utf8.h"
#include "comm/serve/msgpack_numpy.h"
#include "comm/serve/npy.h"
#include "comm/serve/numpy_dtype.h"

namespace troupe::comm {

namespace {

/// Text of a str or, in one vendored client, bin.
std::optional<std::string> text_of(const WireValue* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* text = value->as<std::string>()) return *text;
  if (const auto* bytes = value->as<WireBytes>())
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return std::nullopt;
}

Result<WireValue> to_array(WireMap& map) {
  const auto dtype = text_of(find(map, "dtype"));
  const WireValue* shape = find(map, "shape");
  const auto data = std::find_if(map.begin(), map.end(), [](const WirePair& pair) { return pair.name == "data"; });
  auto* bytes = data == map.end() ? nullptr : std::get_if<WireBytes>(&data->value.storage);
  if (map.size() != 4 || !dtype || shape == nullptr || !shape->as<WireArray>() || bytes == nullptr)
    return invalid_argument(
        "a map with __ndarray__ wants data (bytes), dtype (text) and shape (list of integers) beside it, nothing else");
  std::vector<std::int64_t> dims;
  for (const WireValue& dim : *shape->as<WireArray>()) {
    if (!dim.as<std::int64_t>()) return invalid_argument(fmt::format("an array whose shape holds {}", describe(dim)));
    dims.push_back(*dim.as<std::int64_t>());
  }
  // moved out of the tree: images are large
  TROUPE_ASSIGN(NdArray array, make_ndarray(*dtype, std::move(dims), std::move(*bytes)));
  return WireValue(std::move(array));
}

template <class T>
NdArray scalar_array(const std::string& dtype, T value) {
  NdArray array{dtype, {}, std::vector<std::byte>(sizeof(T))};
  std::memcpy(array.data.data(), &value, sizeof(T));
  return array;
}

Result<WireValue> to_scalar(const WireMap& map) {
  const auto name = text_of(find(map, "dtype"));
  const WireValue* data = find(map, "data");
  if (map.size() != 3 || !name || data == nullptr)
    return invalid_argument(
        "a map with __npgeneric__ wants data (a plain value) and dtype (text) beside it, nothing else");
  TROUPE_ASSIGN(const NumpyDtype dtype, parse_dtype(*name));
  const auto mismatch = [&] {
    return invalid_argument(fmt::format("a NumPy scalar {} that holds {}", *name, describe(*data)));
  };
  if (dtype.kind == 'S' || dtype.kind == 'U') {
    const auto text = text_of(data);
    if (!text || !is_utf8(*text)) return mismatch();
    return WireValue(*text);
  }
  if (dtype.kind == 'b') {
    if (!data->as<bool>()) return mismatch();
    return WireValue(scalar_array<std::uint8_t>(*name, *data->as<bool>() ? 1 : 0));
  }
  if (dtype.kind == 'f') {
    const auto* whole = data->as<std::int64_t>();
    if (!whole && !data->as<double>()) return mismatch();
    const double value = whole ? static_cast<double>(*whole) : *data->as<double>();
    // a half is widened: nothing below reads it otherwise
    if (dtype.item_bytes == 8) return WireValue(scalar_array(*name, value));
    return WireValue(scalar_array("<f4", static_cast<float>(value)));
  }
  if (!data->as<std::int64_t>()) return mismatch();
  const std::int64_t value = *data->as<std::int64_t>();
  const bool is_signed = dtype.kind == 'i';
  const int bits = static_cast<int>(8 * dtype.item_bytes) - (is_signed ? 1 : 0);
  const std::int64_t most = bits >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
  if (value > most || value < (is_signed ? -most - 1 : 0)) return mismatch();
  // little-endian: the low bytes come first
  NdArray array = scalar_array(*name, value);
  array.data.resize(static_cast<std::size_t>(dtype.item_bytes));
  return WireValue(std::move(array));
}

Result<WireValue> to_npy_array(const WireMap& map) {
  const WireValue* npy = find(map, "as_npy");
  if (map.size() != 2 || npy == nullptr || !npy->as<WireBytes>())
    return invalid_argument(
        "a map with __ndarray_class__ wants as_npy (the bytes of a .npy file) beside it, nothing else");
  TROUPE_ASSIGN(NdArray array, read_npy(*npy->as<WireBytes>()));
  return WireValue(std::move(array));
}

/// The map, or the array or scalar that it stands for.
Result<WireValue> finish_map(WireMap map) {
  if (find(map, "__ndarray__")) return to_array(map);
  if (find(map, "__npgeneric__")) return to_scalar(map);
  if (find(map, "__ndarray_class__")) return to_npy_array(map);
  return WireValue(std::move(map));
}

/// Builds the tree from the parser's events; every count is held against the limits and the bytes that are left.
class TreeBuilder : public msgpack::null_visitor {
 public:
  TreeBuilder(std::span<const std::byte> bytes, const WireTreeLimits& limits) : size_(bytes.size()), limits_(limits) {}

  const std::string& error() const { return error_; }
  std::optional<WireValue>& root() { return root_; }

  bool visit_nil() { return add("nil", WireValue()); }
  bool visit_boolean(bool value) { return add("a boolean", WireValue(value)); }
  bool visit_positive_integer(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return fail("an integer over 63 bits");
    return add("an integer", WireValue(static_cast<std::int64_t>(value)));
  }
  bool visit_negative_integer(std::int64_t value) { return add("an integer", WireValue(value)); }
  bool visit_float32(float value) { return add("a float", WireValue(static_cast<double>(value))); }
  bool visit_float64(double value) { return add("a float", WireValue(value)); }
  bool visit_str(const char* data, std::uint32_t size) {
    const std::string_view text(data, size);
    if (size > limits_.text) return fail(fmt::format("a string of {} bytes; at most {} are taken", size, limits_.text));
    if (!is_utf8(text)) return fail("a string that is not UTF-8");
    if (in_key_) return take_name(text);
    return add("a string", WireValue(std::string(text)));
  }
  bool visit_bin(const char* data, std::uint32_t size) {
    if (in_key_) {
      const std::string_view text(data, size);
      if (size > limits_.text) return fail(fmt::format("a name of {} bytes; at most {} are taken", size, limits_.text));
      if (!is_utf8(text)) return fail("a name that is not UTF-8");
      return take_name(text);
    }
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    return add("raw bytes", WireValue(WireBytes(begin, begin + size)));
  }
  bool visit_ext(const char*, std::uint32_t) { return fail("an extension type"); }

  bool start_array(std::uint32_t count) { return open("a list", count, 1); }
  bool end_array() { return close(WireValue(std::move(stack_.back().items))); }
  bool start_map(std::uint32_t count) { return open("a map", count, 2); }
  bool start_map_key() { return in_key_ = true, true; }
  bool end_map_key() { return in_key_ = false, true; }
  bool end_map() {
    auto value = finish_map(std::move(stack_.back().pairs));
    if (!value) return fail(value.error().message());
    return close(std::move(*value));
  }

  void parse_error(std::size_t, std::size_t offset) {
    fail(fmt::format("a byte at {} that is not MessagePack", offset));
  }
  void insufficient_bytes(std::size_t, std::size_t offset) {
    fail(fmt::format("an end in the middle of a value, after {} bytes", offset));
  }

 private:
  struct Open {
    bool is_map = false;
    std::string name;  // of the pair whose value comes
    WireArray items;
    WireMap pairs;
  };

  bool fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }
  bool open(std::string_view what, std::uint32_t count, std::uint32_t values_each) {
    if (in_key_) return fail(fmt::format("{} as a name", what));
    if (std::uint64_t{count} * values_each > size_)
      return fail(fmt::format("{} of {} in a message of {} bytes", what, count, size_));
    if (count > limits_.values)
      return fail(fmt::format("{} of {}; at most {} values are taken", what, count, limits_.values));
    if (stack_.size() >= limits_.depth)
      return fail(fmt::format("more than {} containers inside each other", limits_.depth));
    stack_.push_back({.is_map = values_each == 2, .name = {}, .items = {}, .pairs = {}});
    return true;
  }
  bool close(WireValue value) {
    stack_.pop_back();
    in_key_ = false;
    return attach(std::move(value));
  }
  bool take_name(std::string_view name) {
    Open& map = stack_.back();
    if (find(map.pairs, name)) return fail(fmt::format("the name '{}' twice in a map", name));
    map.name = name;
    return true;
  }
  bool add(std::string_view what, WireValue value) {
    if (in_key_) return fail(fmt::format("{} as a name", what));
    return attach(std::move(value));
  }
  bool attach(WireValue value) {
    if (++values_ > limits_.values) return fail(fmt::format("more than {} values", limits_.values));
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (stack_.back().is_map) {
      if (stack_.back().pairs.size() >= kMaxPairs) return fail(fmt::format("a map of more than {} pairs", kMaxPairs));
      stack_.back().pairs.push_back({std::move(stack_.back().name), std::move(value)});
    } else {
      stack_.back().items.push_back(std::move(value));
    }
    return true;
  }

  static constexpr std::size_t kMaxPairs = 1024;  // names are compared with each other

  std::size_t size_;
  const WireTreeLimits& limits_;
  std::vector<Open> stack_;
  std::uint32_t values_ = 0;
  bool in_key_ = false;
  std::optional<WireValue> root_;
  std::string error_;
};

}  // namespace

Result<WireValue> decode_wire_tree(std::span<const std::byte> bytes, const WireTreeLimits& limits) {
  if (bytes.size() > limits.bytes)
    return invalid_argument(
        fmt::format("malformed message: {} bytes; at most {} are taken", bytes.size(), limits.bytes));
  TreeBuilder builder(bytes, limits);
  std::size_t offset = 0;
  try {
    const bool parsed = msgpack::parse(reinterpret_cast<const char*>(bytes.data()), bytes.size(), offset, builder);
    if (!parsed || !builder.root() || !builder.error().empty())
      return invalid_argument(
          fmt::format("malformed message: {}", builder.error().empty() ? "not MessagePack" : builder.error()));
  } catch (const std::exception& e) {
    return invalid_argument(fmt::format("malformed message: {}", e.what()));
  }
  if (offset != bytes.size())
    return invalid_argument(fmt::format("malformed message: {} bytes after the value", bytes.size() - offset));
  return std::move(*builder.root());
}

}  // namespace troupe::comm

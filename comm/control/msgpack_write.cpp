#include <fmt/format.h>

#include <cmath>
#include <msgpack/pack.hpp>
#include <string_view>
#include <type_traits>

#include "base/utf8.h"
#include "comm/control/msgpack_io.h"

namespace troupe::comm {

namespace {

/// msgpack's idea of a stream.
class ByteSink {
 public:
  void write(const char* data, std::size_t size) {
    const auto* first = reinterpret_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class FieldWriter {
 public:
  explicit FieldWriter(const WireLimits& limits) : packer_(sink_), limits_(limits) {}

  std::vector<std::byte> take() { return sink_.take(); }
  void begin(std::size_t count) { packer_.pack_map(static_cast<std::uint32_t>(count)); }

  Result<void> field(const Field& field) {
    packer_.pack_uint64(field.key);
    auto written = std::visit([&](const auto* value) { return this->value(*value); }, field.target);
    if (!written) return written.error().with(fmt::format("key {}", field.key));
    return {};
  }

 private:
  Result<void> value(std::int64_t v) { return packer_.pack_int64(v), Result<void>{}; }
  Result<void> value(std::uint64_t v) { return packer_.pack_uint64(v), Result<void>{}; }
  Result<void> value(bool v) { return v ? packer_.pack_true() : packer_.pack_false(), Result<void>{}; }
  Result<void> value(double v) {
    if (!std::isfinite(v)) return Error{Errc::invalid_argument, "a number that is not finite cannot be sent"};
    packer_.pack_double(v);
    return {};
  }
  Result<void> value(const std::string& text) {
    if (text.size() > limits_.str) {
      return Error{Errc::invalid_argument,
                   fmt::format("a string of {} bytes; at most {} can be sent", text.size(), limits_.str)};
    }
    if (!is_utf8(text)) return Error{Errc::invalid_argument, "a string that is not UTF-8 cannot be sent"};
    packer_.pack_str(static_cast<std::uint32_t>(text.size()))
        .pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
    return {};
  }
  Result<void> value(const std::array<std::uint8_t, 16>& bytes) {
    packer_.pack_bin(16).pack_bin_body(reinterpret_cast<const char*>(bytes.data()), 16);
    return {};
  }
  template <class T>
  Result<void> value(const std::vector<T>& list) {
    if (list.size() > limits_.array) {
      return Error{Errc::invalid_argument,
                   fmt::format("a list of {}; at most {} can be sent", list.size(), limits_.array)};
    }
    packer_.pack_array(static_cast<std::uint32_t>(list.size()));
    for (const T& item : list) TROUPE_TRY(value(item));
    return {};
  }
  template <class T>
  Result<void> value(const std::map<std::string, T>& map) {
    if (map.size() > limits_.map) {
      return Error{Errc::invalid_argument, fmt::format("a map of {}; at most {} can be sent", map.size(), limits_.map)};
    }
    packer_.pack_map(static_cast<std::uint32_t>(map.size()));
    for (const auto& [name, item] : map) {
      TROUPE_TRY(value(name));
      // metrics may be NaN: that a loss is not finite is news the receiver wants
      if constexpr (std::is_same_v<T, double>) {
        packer_.pack_double(item);
      } else {
        TROUPE_TRY(value(item));
      }
    }
    return {};
  }

  ByteSink sink_;
  msgpack::packer<ByteSink> packer_;
  const WireLimits& limits_;
};

}  // namespace

Result<std::vector<std::byte>> write_map(std::span<const Field> fields, const WireLimits& limits) {
  FieldWriter writer(limits);
  writer.begin(fields.size());
  for (const Field& field : fields) TROUPE_TRY(writer.field(field));
  return writer.take();
}

}  // namespace troupe::comm

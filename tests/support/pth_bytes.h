#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

/// Bytes of a little-endian number.
template <class T>
std::string little(T value, std::size_t bytes = sizeof(T)) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
  return out;
}

inline std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

/// How an archive of stored entries is written; the defaults are PyTorch's.
struct ZipStyle {
  bool zip64 = false;            ///< 64-bit end record and locator, and sizes in extra fields
  bool descriptors = true;       ///< sizes and checksum behind the data as well, zero in the local header
  std::uint16_t method = 0;      ///< as written in the headers; the data stays as it is
  std::uint16_t flags = 0x0800;  ///< names are UTF-8
};

/// An archive as PyTorch writes it: data begins at multiples of 64 bytes behind an extra field "FB" of padding.
inline std::string stored_zip(const std::vector<std::pair<std::string, std::string>>& entries,
                              const ZipStyle& style = {}) {
  std::string out, directory;
  const std::uint16_t flags = static_cast<std::uint16_t>(style.flags | (style.descriptors ? 8U : 0U));
  for (const auto& [name, data] : entries) {
    const auto local = out.size();
    const std::uint32_t crc = crc32_of(data);
    const auto sizes = little<std::uint32_t>(crc) + little(data.size(), 4) + little(data.size(), 4);
    std::size_t padding = (64 - (local + 30 + name.size() + 4) % 64) % 64;
    out += little<std::uint32_t>(0x04034b50) + little<std::uint16_t>(0) + little(flags) + little(style.method);
    out += little<std::uint32_t>(0) + (style.descriptors ? std::string(12, '\0') : sizes);
    out += little(name.size(), 2) + little(padding + 4, 2) + name;
    out += "FB" + little(padding, 2) + std::string(padding, 'Z') + data;
    if (style.descriptors) out += little<std::uint32_t>(0x08074b50) + sizes;
    std::string extra;
    if (style.zip64) {
      extra = little<std::uint16_t>(1) + little<std::uint16_t>(24) + little(data.size(), 8) + little(data.size(), 8) +
              little(local, 8);
    }
    const auto narrow = [&](std::size_t value) {
      return style.zip64 ? little<std::uint32_t>(0xFFFFFFFF) : little(value, 4);
    };
    directory += little<std::uint32_t>(0x02014b50) + little<std::uint32_t>(0) + little(flags) + little(style.method);
    directory += little<std::uint32_t>(0) + little(crc) + narrow(data.size()) + narrow(data.size());
    directory += little(name.size(), 2) + little(extra.size(), 2) + little<std::uint16_t>(0) + std::string(8, '\0');
    directory += narrow(local) + name + extra;
  }
  const auto begin = out.size();
  out += directory;
  if (style.zip64) {
    const auto end64 = out.size();
    out +=
        little<std::uint32_t>(0x06064b50) + little<std::uint64_t>(44) + little<std::uint32_t>(0) + std::string(8, '\0');
    out += little(entries.size(), 8) + little(entries.size(), 8) + little(directory.size(), 8) + little(begin, 8);
    out += little<std::uint32_t>(0x07064b50) + little<std::uint32_t>(0) + little(end64, 8) + little<std::uint32_t>(1);
  }
  out += little<std::uint32_t>(0x06054b50) + little<std::uint32_t>(0) + little(entries.size(), 2) +
         little(entries.size(), 2);
  return out + little(directory.size(), 4) + little(begin, 4) + little<std::uint16_t>(0);
}

/// Writes the opcodes of a pickle.
class PickleBytes {
 public:
  PickleBytes() { raw("\x80\x02"); }

  PickleBytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  /// Remembers the value on the stack, as the pickler does with every value.
  PickleBytes& put() {
    raw(next_ < 256 ? "q" + little(next_, 1) : "r" + little(next_, 4));
    ++next_;
    return *this;
  }
  PickleBytes& text(std::string_view value) { return raw("X" + little(value.size(), 4)).raw(value).put(); }
  PickleBytes& number(std::int64_t value) {
    if (value >= 0 && value < 256) return raw("K" + little(value, 1));
    if (value >= 0 && value < 65536) return raw("M" + little(value, 2));
    if (value >= INT32_MIN && value <= INT32_MAX) return raw("J" + little(value, 4));
    return raw("\x8a\x08" + little(value, 8));
  }
  PickleBytes& tuple(const std::vector<std::int64_t>& values) {
    if (values.empty()) return raw(")");
    if (values.size() > 3) raw("(");
    for (const auto value : values) number(value);
    return raw(values.size() > 3 ? "t" : std::string(1, static_cast<char>(0x84 + values.size()))).put();
  }
  PickleBytes& global(std::string_view module, std::string_view name) {
    return raw("c").raw(module).raw("\n").raw(name).raw("\n").put();
  }
  PickleBytes& ordered_dict() { return global("collections", "OrderedDict").raw(")R").put(); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::int64_t next_ = 0;
};

/// A tensor of a state dict.
struct PthTensor {
  std::string name;
  std::string storage_type = "FloatStorage";
  std::string key;
  std::int64_t storage_numel = 0;
  std::int64_t first = 0;
  std::vector<std::int64_t> shape, strides;
  bool parameter = false;
};

inline void add_tensor(PickleBytes& out, const PthTensor& t) {
  if (t.parameter) out.global("torch._utils", "_rebuild_parameter").raw("(");
  out.global("torch._utils", "_rebuild_tensor_v2")
      .raw("((")
      .text("storage")
      .global("torch", t.storage_type)
      .text(t.key);
  out.text("cpu").number(t.storage_numel).raw("t").put().raw("Q").number(t.first).tuple(t.shape).tuple(t.strides);
  out.raw("\x89").ordered_dict().raw("t").put().raw("R").put();
  if (t.parameter) out.raw("\x88").ordered_dict().raw("t").put().raw("R").put();
}

/// Adds a state dict as nn.Module.state_dict() gives it: an OrderedDict with the attribute _metadata.
inline void add_state_dict(PickleBytes& out, const std::vector<PthTensor>& tensors) {
  out.ordered_dict().raw("(");
  for (const auto& t : tensors) {
    out.text(t.name);
    add_tensor(out, t);
  }
  out.raw("u}").put().text("_metadata").ordered_dict().text("").raw("}").put().text("version").number(1).raw("sssb");
}

inline std::string state_dict_pickle(const std::vector<PthTensor>& tensors) {
  PickleBytes out;
  add_state_dict(out, tensors);
  return out.raw(".").bytes();
}

/// A file as torch.save writes it: `storages` are pairs of key and raw values.
inline std::string pth_bytes(const std::string& pickle,
                             const std::vector<std::pair<std::string, std::string>>& storages,
                             const ZipStyle& style = {}) {
  std::vector<std::pair<std::string, std::string>> entries = {{"weights/data.pkl", pickle},
                                                              {"weights/byteorder", "little"}};
  for (const auto& [key, data] : storages) entries.emplace_back("weights/data/" + key, data);
  entries.emplace_back("weights/version", "3\n");
  entries.emplace_back("weights/.data/serialization_id", "0123456789012345678901234567890123456789");
  return stored_zip(entries, style);
}

/// Raw values of a storage.
template <class T>
std::string raw_values(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace troupe::testing

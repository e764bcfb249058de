#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "configs/format_error.h"
#include "configs/strict_json.h"
#include "model/io/safetensors.h"

namespace troupe::model {

namespace {

using nlohmann::json;

struct DtypeSize {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<DtypeSize, 15> kDtypes = {{{"F64", 8},
                                                {"F32", 4},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"I64", 8},
                                                {"I32", 4},
                                                {"I16", 2},
                                                {"I8", 1},
                                                {"U64", 8},
                                                {"U32", 4},
                                                {"U16", 2},
                                                {"U8", 1},
                                                {"BOOL", 1},
                                                {"F8_E4M3", 1},
                                                {"F8_E5M2", 1}}};

/// Words of the header for messages, with their place in the file.
struct HeaderText {
  std::string_view text;  ///< the JSON; it begins at offset 8 of the file
  std::int64_t data_begin() const { return 8 + static_cast<std::int64_t>(text.size()); }
  [[noreturn]] void fail(const std::string& tensor, const std::string& message) const {
    throw FormatError(8 + find_json_key(text, tensor, 0), fmt::format("tensor '{}': {}", tensor, message));
  }
};

std::int64_t read_count(const HeaderText& header, const json& value, const std::string& tensor, const char* what) {
  // get<int64> turns an unsigned value above the limit into a negative one
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
    header.fail(tensor, fmt::format("{} {} is not a count", what, value.dump()));
  }
  return value.get<std::int64_t>();
}

struct Entry {
  std::string name;
  TensorInfo info;
  std::int64_t begin = 0, end = 0;
};

bool has_form(const json& value) {
  return value.is_object() && value.size() == 3 && value.contains("dtype") && value.contains("shape") &&
         value.contains("data_offsets") && value["dtype"].is_string() && value["shape"].is_array() &&
         value["data_offsets"].is_array() && value["data_offsets"].size() == 2;
}

Entry read_entry(const HeaderText& header, const std::string& name, const json& value,
                 std::span<const std::byte> data) {
  if (!has_form(value)) header.fail(name, "it is not {dtype, shape, data_offsets: [begin, end]}");
  Entry entry;
  entry.name = name;
  entry.info.dtype = value["dtype"].get<std::string>();
  const auto element = safetensors_dtype_size(entry.info.dtype);
  if (!element) header.fail(name, fmt::format("unknown dtype '{}'", entry.info.dtype));
  std::int64_t bytes = *element;
  for (const json& dim : value["shape"]) {
    const std::int64_t d = read_count(header, dim, name, "dimension");
    entry.info.shape.push_back(d);
    if (__builtin_mul_overflow(bytes, d, &bytes)) header.fail(name, "its shape overflows 64 bits");
  }
  entry.begin = read_count(header, value["data_offsets"][0], name, "offset");
  entry.end = read_count(header, value["data_offsets"][1], name, "offset");
  if (entry.end < entry.begin || entry.end > static_cast<std::int64_t>(data.size())) {
    header.fail(
        name, fmt::format("offsets [{}, {}) leave the {} data bytes of the file", entry.begin, entry.end, data.size()));
  }
  if (entry.end - entry.begin != bytes) {
    header.fail(name, fmt::format("{} bytes of data; its shape and dtype {} need {}", entry.end - entry.begin,
                                  entry.info.dtype, bytes));
  }
  entry.info.bytes = data.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(bytes));
  entry.info.offset = header.data_begin() + entry.begin;
  return entry;
}

void check_coverage(const HeaderText& header, const std::vector<Entry>& entries, std::size_t data_bytes) {
  const std::int64_t data_begin = header.data_begin();
  std::int64_t next = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < next) {
      throw FormatError(data_begin + entry.begin, fmt::format("tensor '{}' overlaps the one before it", entry.name));
    }
    if (entry.begin > next) {
      throw FormatError(data_begin + next, fmt::format("bytes [{}, {}) before tensor '{}' belong to no tensor", next,
                                                       entry.begin, entry.name));
    }
    next = entry.end;
  }
  if (next != static_cast<std::int64_t>(data_bytes)) {
    throw FormatError(data_begin + next, fmt::format("the last {} bytes belong to no tensor",
                                                     static_cast<std::int64_t>(data_bytes) - next));
  }
}

}  // namespace

std::optional<std::int64_t> safetensors_dtype_size(std::string_view dtype) {
  for (const DtypeSize& known : kDtypes) {
    if (known.name == dtype) return known.bytes;
  }
  return std::nullopt;
}

struct SafetensorsReader::Impl {
  explicit Impl(MappedFile mapped) : file(std::move(mapped)) {}

  MappedFile file;
  std::vector<std::string> names;
  std::map<std::string, TensorInfo, std::less<>> tensors;
  std::map<std::string, std::string> metadata;

  void read();
  void read_metadata(const json& value);
};

void SafetensorsReader::Impl::read_metadata(const json& value) {
  if (!value.is_object()) throw FormatError(8, "__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) throw FormatError(8, fmt::format("__metadata__.{} is not a string", key));
    metadata[key] = text.get<std::string>();
  }
}

void SafetensorsReader::Impl::read() {
  const auto bytes = file.bytes();
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<std::uint64_t>(bytes[i]);
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeader)) {
    throw FormatError(0, fmt::format("header of {} bytes; at most {} are allowed", length, kMaxSafetensorsHeader));
  }
  if (length > bytes.size() - 8) {
    throw FormatError(0,
                      fmt::format("header of {} bytes in a file of {}; the file is truncated", length, bytes.size()));
  }
  const HeaderText text{{reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<std::size_t>(length)}};
  const json header = parse_strict_json(text.text, 3, "header", 8);
  if (!header.is_object()) throw FormatError(8, "the header is not an object");
  const auto data = bytes.subspan(static_cast<std::size_t>(text.data_begin()));
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      read_metadata(value);
    } else {
      entries.push_back(read_entry(text, name, value, data));
      entries.back().info.file = file.path();
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
  });
  check_coverage(text, entries, data.size());
  for (Entry& entry : entries) {
    names.push_back(entry.name);
    tensors.emplace(std::move(entry.name), std::move(entry.info));
  }
}

SafetensorsReader::SafetensorsReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&&) noexcept = default;
SafetensorsReader::~SafetensorsReader() = default;

Result<SafetensorsReader> SafetensorsReader::open(const std::string& path) {
  TROUPE_ASSIGN(MappedFile file, MappedFile::open(path, 8));
  auto impl = std::make_unique<Impl>(std::move(file));
  try {
    impl->read();
  } catch (const FormatError& e) {
    return e.in(path);
  }
  return SafetensorsReader(std::move(impl));
}

const std::string& SafetensorsReader::path() const { return impl_->file.path(); }
const std::vector<std::string>& SafetensorsReader::names() const { return impl_->names; }
bool SafetensorsReader::contains(std::string_view name) const {
  return impl_->tensors.find(name) != impl_->tensors.end();
}
const std::map<std::string, std::string>& SafetensorsReader::metadata() const { return impl_->metadata; }
std::span<const std::byte> SafetensorsReader::file_bytes() const { return impl_->file.bytes(); }

Result<TensorInfo> SafetensorsReader::info(std::string_view name) const {
  const auto found = impl_->tensors.find(name);
  if (found == impl_->tensors.end()) {
    return Error{Errc::not_found, fmt::format("{}: there is no tensor '{}' among its {}", impl_->file.path(), name,
                                              impl_->tensors.size())};
  }
  return found->second;
}

}  // namespace troupe::model

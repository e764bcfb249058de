#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "model/io/safetensors.h"

namespace troupe {

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

/// A header that is not what the format says; carries the sentence.
struct HeaderError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// nlohmann keeps the last of equal keys; a file that says two things about a tensor is damaged.
json parse_header(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&keys](int depth, json::parse_event_t event, json& parsed) {
    if (depth > 3) throw HeaderError("the header is nested more than 3 deep");
    if (event == json::parse_event_t::object_start) {
      keys.resize(static_cast<std::size_t>(depth) + 1);
      keys.back().clear();
    } else if (event == json::parse_event_t::key) {
      const auto name = parsed.get<std::string>();
      if (!keys[static_cast<std::size_t>(depth) - 1].insert(name).second) {
        throw HeaderError(fmt::format("key '{}' appears twice in the header", name));
      }
    }
    return true;
  };
  return json::parse(text.begin(), text.end(), watch);
}

std::int64_t read_count(const json& value, const std::string& tensor, const char* what) {
  // get<int64> turns an unsigned value above the limit into a negative one
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
    throw HeaderError(fmt::format("tensor '{}': {} {} is not a count", tensor, what, value.dump()));
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

Entry read_entry(const std::string& name, const json& value, std::span<const std::byte> data) {
  if (!has_form(value))
    throw HeaderError(fmt::format("tensor '{}' is not {{dtype, shape, data_offsets: [begin, end]}}", name));
  Entry entry;
  entry.name = name;
  entry.info.dtype = value["dtype"].get<std::string>();
  const auto element = safetensors_dtype_size(entry.info.dtype);
  if (!element) throw HeaderError(fmt::format("tensor '{}': unknown dtype '{}'", name, entry.info.dtype));
  std::int64_t bytes = *element;
  for (const json& dim : value["shape"]) {
    const std::int64_t d = read_count(dim, name, "dimension");
    entry.info.shape.push_back(d);
    if (__builtin_mul_overflow(bytes, d, &bytes))
      throw HeaderError(fmt::format("tensor '{}': its shape overflows 64 bits", name));
  }
  entry.begin = read_count(value["data_offsets"][0], name, "offset");
  entry.end = read_count(value["data_offsets"][1], name, "offset");
  if (entry.end < entry.begin || entry.end > static_cast<std::int64_t>(data.size())) {
    throw HeaderError(fmt::format("tensor '{}': offsets [{}, {}) leave the {} data bytes of the file", name,
                                  entry.begin, entry.end, data.size()));
  }
  if (entry.end - entry.begin != bytes) {
    throw HeaderError(fmt::format("tensor '{}': {} bytes of data; its shape and dtype {} need {}", name,
                                  entry.end - entry.begin, entry.info.dtype, bytes));
  }
  entry.info.bytes = data.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(bytes));
  return entry;
}

void check_coverage(const std::vector<Entry>& entries, std::size_t data_bytes) {
  std::int64_t next = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < next) throw HeaderError(fmt::format("tensor '{}' overlaps the one before it", entry.name));
    if (entry.begin > next) {
      throw HeaderError(
          fmt::format("bytes [{}, {}) before tensor '{}' belong to no tensor", next, entry.begin, entry.name));
    }
    next = entry.end;
  }
  if (next != static_cast<std::int64_t>(data_bytes)) {
    throw HeaderError(
        fmt::format("the last {} bytes belong to no tensor", static_cast<std::int64_t>(data_bytes) - next));
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
  std::string path;
  void* map = nullptr;
  std::size_t size = 0;
  std::vector<std::string> names;
  std::map<std::string, TensorInfo, std::less<>> tensors;
  std::map<std::string, std::string> metadata;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (map != nullptr) ::munmap(map, size);
  }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(map), size}; }

  Result<void> map_file();
  void read();
  void read_metadata(const json& value);
};

Result<void> SafetensorsReader::Impl::map_file() {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const Errc code = errno == ENOENT || errno == ENOTDIR ? Errc::not_found : Errc::unavailable;
    return Error{code, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};
  }
  struct stat status {};
  const bool regular = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  size = regular ? static_cast<std::size_t>(status.st_size) : 0;
  if (size < 8) {
    ::close(fd);
    return Error{Errc::data_loss, regular ? fmt::format("{}: {} bytes; not a safetensors file", path, size)
                                          : fmt::format("{}: not a regular file", path)};
  }
  map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int cause = errno;
  ::close(fd);
  if (map == MAP_FAILED) {
    map = nullptr;
    return Error{Errc::unavailable, fmt::format("{}: cannot be mapped: {}", path, std::strerror(cause))};
  }
  return {};
}

void SafetensorsReader::Impl::read_metadata(const json& value) {
  if (!value.is_object()) throw HeaderError("__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) throw HeaderError(fmt::format("__metadata__.{} is not a string", key));
    metadata[key] = text.get<std::string>();
  }
}

void SafetensorsReader::Impl::read() {
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<std::uint64_t>(bytes()[i]);
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeader)) {
    throw HeaderError(fmt::format("header of {} bytes; at most {} are allowed", length, kMaxSafetensorsHeader));
  }
  if (length > size - 8)
    throw HeaderError(fmt::format("header of {} bytes in a file of {}; the file is truncated", length, size));
  const auto header_bytes = static_cast<std::size_t>(length);
  const json header = parse_header({reinterpret_cast<const char*>(bytes().data()) + 8, header_bytes});
  if (!header.is_object()) throw HeaderError("the header is not an object");
  const auto data = bytes().subspan(8 + header_bytes);
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      read_metadata(value);
    } else {
      entries.push_back(read_entry(name, value, data));
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
  });
  check_coverage(entries, data.size());
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
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  TROUPE_TRY(impl->map_file());
  try {
    impl->read();
  } catch (const HeaderError& e) {
    return Error{Errc::data_loss, fmt::format("{}: {}", path, e.what())};
  } catch (const json::exception& e) {
    return Error{Errc::data_loss, fmt::format("{}: the header is not valid JSON: {}", path, e.what())};
  }
  return SafetensorsReader(std::move(impl));
}

const std::string& SafetensorsReader::path() const { return impl_->path; }
const std::vector<std::string>& SafetensorsReader::names() const { return impl_->names; }
bool SafetensorsReader::contains(std::string_view name) const {
  return impl_->tensors.find(name) != impl_->tensors.end();
}
const std::map<std::string, std::string>& SafetensorsReader::metadata() const { return impl_->metadata; }
std::span<const std::byte> SafetensorsReader::file_bytes() const { return impl_->bytes(); }

Result<TensorInfo> SafetensorsReader::info(std::string_view name) const {
  const auto found = impl_->tensors.find(name);
  if (found == impl_->tensors.end()) {
    return Error{Errc::not_found,
                 fmt::format("{}: there is no tensor '{}' among its {}", impl_->path, name, impl_->tensors.size())};
  }
  return found->second;
}

}  // namespace troupe

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file_io.h"
#include "base/hash.h"
#include "model/io/chunk_digests.h"
#include "model/io/safetensors.h"

namespace troupe::model {

namespace {

using nlohmann::json;

// Small appends are gathered; larger ones go straight to the file.
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

struct Header {
  std::string text;  ///< padded JSON
  std::int64_t data_bytes = 0;
};

Result<Header> make_header(const std::string& path, const std::vector<TensorDeclaration>& tensors,
                           const std::map<std::string, std::string>& metadata) {
  json root = json::object();
  if (!metadata.empty()) root["__metadata__"] = metadata;
  Header header;
  for (const TensorDeclaration& t : tensors) {
    const auto element = safetensors_dtype_size(t.dtype);
    const auto bad = [&](std::string_view why) {
      return Error{Errc::invalid_argument, fmt::format("{}: tensor '{}': {}", path, t.name, why)};
    };
    if (!element) return bad(fmt::format("unknown dtype '{}'", t.dtype));
    if (t.name == "__metadata__") return bad("the name is reserved");
    if (root.contains(t.name)) return bad("declared twice");
    std::int64_t bytes = *element;
    for (const std::int64_t d : t.shape) {
      if (d < 0 || __builtin_mul_overflow(bytes, d, &bytes)) return bad(fmt::format("bad dimension {}", d));
    }
    root[t.name] = {
        {"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {header.data_bytes, header.data_bytes + bytes}}};
    header.data_bytes += bytes;
  }
  try {
    header.text = root.dump();
  } catch (const json::exception& e) {
    return Error{Errc::invalid_argument, fmt::format("{}: a name or metadata is not UTF-8: {}", path, e.what())};
  }
  header.text.append((8 - header.text.size() % 8) % 8, ' ');
  if (static_cast<std::int64_t>(header.text.size()) > kMaxSafetensorsHeader) {
    return Error{Errc::invalid_argument, fmt::format("{}: header of {} bytes; at most {} are allowed", path,
                                                     header.text.size(), kMaxSafetensorsHeader)};
  }
  return header;
}

}  // namespace

struct SafetensorsWriter::Impl {
  std::string path;
  FileDescriptor fd;
  std::int64_t remaining = 0;  ///< data bytes still to append
  std::int64_t size = 0;
  std::vector<std::byte> buffer;
  Xxh3Stream digest;
  ChunkDigests chunks;

  Result<void> flush() {
    TROUPE_TRY(write_all(fd.get(), buffer, path));
    buffer.clear();
    return {};
  }
  Result<void> put(std::span<const std::byte> bytes) {
    digest.update(bytes);
    chunks.update(bytes);
    size += static_cast<std::int64_t>(bytes.size());
    if (buffer.size() + bytes.size() > kBufferBytes) TROUPE_TRY(flush());
    if (bytes.size() >= kBufferBytes) return write_all(fd.get(), bytes, path);
    buffer.insert(buffer.end(), bytes.begin(), bytes.end());
    return {};
  }
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    const std::vector<TensorDeclaration>& tensors,
                                                    const std::map<std::string, std::string>& metadata) {
  TROUPE_ASSIGN(const Header header, make_header(path, tensors, metadata));
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->remaining = header.data_bytes;
  TROUPE_ASSIGN(impl->fd, open_file(path, O_WRONLY | O_CREAT | O_TRUNC));
  std::byte length[8];
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(header.text.size() >> (8 * i) & 0xFF);
  TROUPE_TRY(impl->put(length));
  TROUPE_TRY(impl->put(std::as_bytes(std::span(header.text))));
  return SafetensorsWriter(std::move(impl));
}

Result<void> SafetensorsWriter::append(std::span<const std::byte> bytes) {
  if (static_cast<std::int64_t>(bytes.size()) > impl_->remaining) {
    return Error{Errc::invalid_argument, fmt::format("{}: {} bytes appended where {} were declared", impl_->path,
                                                     bytes.size(), impl_->remaining)};
  }
  impl_->remaining -= static_cast<std::int64_t>(bytes.size());
  return impl_->put(bytes);
}

Result<void> SafetensorsWriter::finish() {
  if (impl_->remaining != 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: {} declared bytes were not appended", impl_->path, impl_->remaining)};
  }
  return impl_->flush();
}

Result<void> SafetensorsWriter::sync() {
  if (::fsync(impl_->fd.get()) != 0) return file_error(impl_->path, "cannot be synced", errno);
  return {};
}

std::int64_t SafetensorsWriter::size() const { return impl_->size; }
std::string SafetensorsWriter::digest() const { return impl_->digest.hex(); }
std::string SafetensorsWriter::chunk_list() const { return impl_->chunks.list(); }

}  // namespace troupe::model

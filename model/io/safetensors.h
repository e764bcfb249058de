#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::model {

// The safetensors container (docs/checkpoints.md): u64 little-endian header length, a JSON header
// {name: {dtype, shape, data_offsets: [begin, end]}, "__metadata__": {string: string}}, then the data without gaps.
// Offsets count bytes from the end of the header; a tensor is row-major and little-endian.

/// A longer header is refused.
inline constexpr std::int64_t kMaxSafetensorsHeader = 100'000'000;

/// Bytes of one element: F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL F8_E4M3 F8_E5M2; nothing for other names.
std::optional<std::int64_t> safetensors_dtype_size(std::string_view dtype);

/// One tensor of an open file. Cheap to copy but for the shape; owns no data.
struct TensorInfo {
  /// one of safetensors_dtype_size's names: "F32", "BF16", ...
  std::string dtype;
  /// extents, slowest axis first; empty for a scalar
  std::vector<std::int64_t> shape;
  /// row-major little-endian; valid while the reader lives; may be unaligned
  std::span<const std::byte> bytes;
  /// path of the file that holds it; valid while the reader lives
  std::string_view file;
  /// where `bytes` begins in that file
  std::int64_t offset = 0;

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
};

/// A safetensors file mapped read-only. The whole header is checked on opening: its length, the JSON (no key twice),
/// known dtypes, sizes that match shapes, offsets inside the file, no gap and no overlap. Immutable afterwards: any
/// number of threads may read. The file must not be truncated while it is open.
class SafetensorsReader {
 public:
  /// Cost: the header's size; no tensor is touched, so values are not checked (there is no checksum in the format).
  /// Errors: not_found, or data_loss naming the file, what is wrong and the offset where.
  static Result<SafetensorsReader> open(const std::string& path);

  SafetensorsReader(SafetensorsReader&&) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&&) noexcept;
  ~SafetensorsReader();

  const std::string& path() const;
  /// Tensor names in the order of their data.
  const std::vector<std::string>& names() const;
  bool contains(std::string_view name) const;
  /// Errors: not_found, naming the file and the tensor.
  Result<TensorInfo> info(std::string_view name) const;
  /// What "__metadata__" holds; empty without it.
  const std::map<std::string, std::string>& metadata() const;
  /// The whole file, header included; for digests.
  std::span<const std::byte> file_bytes() const;

 private:
  struct Impl;
  explicit SafetensorsReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A tensor that a file will hold, or that a source holds: as TensorInfo without the bytes.
struct TensorDeclaration {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
};

/// Streams tensors to a file: declare all, then append their bytes in that order, then finish. The header is padded
/// with spaces so that the data starts at a multiple of 8 bytes; keys are sorted, so equal input gives equal bytes.
/// Not thread-safe. Destroying an unfinished writer closes the file and leaves it incomplete: the caller removes it.
/// Errors of all calls: those of file_error (base/file_io.h) for failures of the system, such as resource_exhausted for
/// a full disk; invalid_argument for a bad declaration or bytes that do not add up; each names the file.
class SafetensorsWriter {
 public:
  /// Creates (or truncates) `path` and writes the header. Data lie in the order of `tensors`.
  /// A missing folder is not_found.
  static Result<SafetensorsWriter> create(const std::string& path, const std::vector<TensorDeclaration>& tensors,
                                          const std::map<std::string, std::string>& metadata = {});

  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();

  /// The next bytes of the current tensor; they may span several tensors or be part of one.
  Result<void> append(std::span<const std::byte> bytes);
  /// Hands everything to the operating system. Errors: invalid_argument when bytes are missing.
  Result<void> finish();
  /// fsync of the file, not of its folder: renaming it into place is the caller's. Call after finish.
  Result<void> sync();

  /// Bytes of the file, header included.
  std::int64_t size() const;
  /// XXH3-128 of the file as 32 hex digits, kept while writing. Complete after finish.
  std::string digest() const;
  /// Digests by chunk of the same bytes (model/io/chunk_digests.h). Complete after finish.
  std::string chunk_list() const;

 private:
  struct Impl;
  explicit SafetensorsWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::model

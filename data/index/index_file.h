#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace troupe::data {

/// Grows whenever the bytes or the meaning of an index file change; an index of another version is built anew.
/// docs/dataset-index.md has every byte.
inline constexpr std::uint32_t kIndexVersion = 2;

/// files: files.idx, one per dataset. samples: samples-*.idx, one per dataset and recipe.
enum class IndexKind : std::uint32_t { files = 1, samples = 2 };

/// One index file: a header and sections, each beginning at a multiple of 8 bytes. Sections hold what
/// docs/dataset-index.md says; this class vouches for their bounds and for the digest of the covered ones. Immutable:
/// any thread. Spans are valid while the object lives.
///
/// Header, little-endian (offset, bytes: contents):
///      0, 8: "TRPINDEX"            24, 8: bytes of the file
///      8, 4: 0x01020304            32, 8: end of the covered bytes, which begin at 80
///     12, 4: kIndexVersion         40, 32: XXH3-128 of the covered bytes, hex digits
///     16, 4: IndexKind             72, 8: XXH3-64 of bytes 0 to 71
///     20, 4: number of sections    80, 16 each: offset and bytes of every section
class IndexFile {
 public:
  /// Maps a file and checks its digest; pages that were read for that are given back. Errors: not_found; data_loss
  /// (another kind, version or byte order, damage), those of file_error.
  static Result<std::shared_ptr<const IndexFile>> open(const std::string& path, IndexKind kind);
  /// The same over bytes in memory: what an index that is not written looks like. `name` stands for the path in errors.
  static Result<std::shared_ptr<const IndexFile>> from_bytes(std::string bytes, IndexKind kind,
                                                             const std::string& name);

  /// The path, or what from_bytes was given.
  const std::string& name() const { return name_; }
  /// Of the covered part: files of equal digests have equal contents.
  const std::string& digest() const { return digest_; }
  /// The whole file, header included.
  std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  /// Sections of the file, at most 64.
  std::size_t num_sections() const { return sections_.size(); }
  /// Empty for a section that the file does not have.
  std::span<const std::byte> section(std::size_t i) const {
    return i < sections_.size() ? sections_[i] : std::span<const std::byte>();
  }
  /// A section as an array of T, in place: little-endian as in the file. Errors: data_loss when its size is not a
  /// multiple of T's.
  template <class T>
  Result<std::span<const T>> array(std::size_t i) const {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
    const auto raw = section(i);
    if (raw.size() % sizeof(T) != 0) return damage("a section of an odd size");
    return std::span<const T>(reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T));
  }
  /// data_loss, saying that this file is damaged and how.
  Error damage(const std::string& what) const;

 private:
  IndexFile() = default;
  Result<void> parse(IndexKind kind);
  Result<void> check_digest();

  std::string name_, owned_, digest_;
  std::optional<MappedFile> mapped_;
  std::span<const std::byte> bytes_;
  std::vector<std::span<const std::byte>> sections_;
};

/// The bytes of an index file. The digest in the header covers everything from behind the header to the end of section
/// `covered` - 1; what is behind it is vouched for by digests inside the covered part.
std::string index_bytes(IndexKind kind, const std::vector<std::string>& sections, std::size_t covered);

/// Writes an index under a name of its own, syncs and renames it: a reader sees the old file or the new one, and of two
/// writers the last one wins. Makes missing parent folders. Errors: those of file_error.
Result<void> write_index(const std::string& path, std::string_view bytes);

}  // namespace troupe::data

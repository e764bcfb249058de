#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::model {

/// One file inside a zip archive: `size` bytes at `offset` of the archive, behind its local header.
struct ZipEntry {
  /// path inside the archive with slashes, as it is written: not cleaned of "..", since nothing is unpacked
  std::string name;
  std::int64_t offset = 0;
  std::int64_t size = 0;
};

/// More entries, or longer names, are refused.
inline constexpr std::int64_t kMaxZipEntries = 1'000'000;
inline constexpr std::int64_t kMaxZipName = 4096;

/// The entries in the order of the directory (PKWARE's APPNOTE: end record, found from behind; zip64 end record where a
/// locator stands before it; central directory; local headers). Reads the central directory of an archive whose entries
/// are stored without compression, zip64 or not, as torch.save writes it. Sizes come from the directory; the local
/// headers are checked against it. Nothing is unpacked, so that an archive cannot grow. Throws FormatError: no
/// directory, several disks, an entry that is compressed or encrypted, leaves the file, overlaps another or has its
/// name. Checksums are not computed.
std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> archive);

}  // namespace troupe::model

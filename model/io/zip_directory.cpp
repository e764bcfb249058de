#include "model/io/zip_directory.h"

#include <algorithm>
#include <set>

#include "model/io/byte_cursor.h"

namespace troupe::model {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50;
constexpr std::uint32_t kDirectoryEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kLocalBytes = 30, kLongestComment = 0xFFFF;
constexpr std::uint16_t kExtra64 = 1, kEncrypted = 1, kStored = 0;

/// Where the directory lies.
struct Directory {
  std::uint64_t entries = 0, bytes = 0, offset = 0;
};

/// What the directory says of an entry.
struct Record {
  ZipEntry entry;
  std::uint64_t local = 0;  ///< offset of its local header
};

ByteCursor cursor_at(std::span<const std::byte> archive, std::uint64_t offset, std::uint64_t bytes, const char* what) {
  if (offset > archive.size() || bytes > archive.size() - offset) {
    throw FormatError(
        static_cast<std::int64_t>(std::min<std::uint64_t>(offset, archive.size())),
        fmt::format("the {} of {} bytes at {} leaves the file of {} bytes", what, bytes, offset, archive.size()));
  }
  const auto begin = static_cast<std::size_t>(offset);
  return {archive.subspan(begin, static_cast<std::size_t>(bytes)), static_cast<std::int64_t>(offset), what};
}

/// The end record is found from behind: only a comment may follow it.
std::size_t find_end(std::span<const std::byte> archive) {
  if (archive.size() < kEndBytes) throw FormatError(0, "not a zip archive: too short");
  const std::size_t last = archive.size() - kEndBytes;
  const std::size_t first = last > kLongestComment ? last - kLongestComment : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    auto cursor = cursor_at(archive, at, kEndBytes, "end record");
    if (cursor.number<std::uint32_t>() != kDirectoryEnd) continue;
    cursor.take(16);
    if (cursor.number<std::uint16_t>() == archive.size() - kEndBytes - at) return at;
  }
  throw FormatError(static_cast<std::int64_t>(last), "not a zip archive, or cut off: it has no end record");
}

/// The 64-bit end record, which a locator before the plain one points to.
Directory read_end64(std::span<const std::byte> archive, std::size_t end) {
  auto locator = cursor_at(archive, end - kLocatorBytes, kLocatorBytes, "zip64 locator");
  locator.take(8);  // signature, disk
  auto cursor = cursor_at(archive, locator.number<std::uint64_t>(), 56, "zip64 end record");
  const auto at = cursor.offset();
  if (cursor.number<std::uint32_t>() != kDirectoryEnd64) throw FormatError(at, "there is no zip64 end record here");
  cursor.take(8 + 2 + 2);  // length, versions
  const auto disk = cursor.number<std::uint32_t>(), first_disk = cursor.number<std::uint32_t>();
  const auto here = cursor.number<std::uint64_t>();
  Directory directory;
  directory.entries = cursor.number<std::uint64_t>();
  directory.bytes = cursor.number<std::uint64_t>();
  directory.offset = cursor.number<std::uint64_t>();
  if (disk != 0 || first_disk != 0 || here != directory.entries) throw FormatError(at, "the archive has several disks");
  return directory;
}

Directory read_end(std::span<const std::byte> archive) {
  const std::size_t end = find_end(archive);
  auto cursor = cursor_at(archive, end, kEndBytes, "end record");
  cursor.take(4);
  const auto disk = cursor.number<std::uint16_t>(), first_disk = cursor.number<std::uint16_t>();
  const auto here = cursor.number<std::uint16_t>();
  Directory directory;
  directory.entries = cursor.number<std::uint16_t>();
  directory.bytes = cursor.number<std::uint32_t>();
  directory.offset = cursor.number<std::uint32_t>();
  if (end >= kLocatorBytes) {
    auto before = cursor_at(archive, end - kLocatorBytes, 4, "zip64 locator");
    if (before.number<std::uint32_t>() == kLocator64) return read_end64(archive, end);
  }
  if (disk != 0 || first_disk != 0 || here != directory.entries) {
    throw FormatError(static_cast<std::int64_t>(end), "the archive has several disks");
  }
  return directory;
}

/// Replaces the 32-bit values that are all ones by those of the zip64 extra field, in the format's order.
void read_extra64(ByteCursor extra, std::uint64_t& size, std::uint64_t& packed, std::uint64_t& local) {
  constexpr std::uint64_t kInExtra = 0xFFFFFFFF;
  while (!extra.at_end()) {
    const auto id = extra.number<std::uint16_t>();
    const auto bytes = extra.number<std::uint16_t>();
    const auto at = extra.offset();
    ByteCursor field(extra.take(bytes), at, "zip64 field");
    if (id != kExtra64) continue;
    for (std::uint64_t* value : {&size, &packed, &local}) {
      if (*value == kInExtra) *value = field.number<std::uint64_t>();
    }
    return;
  }
}

Record read_record(ByteCursor& cursor, std::uint64_t limit) {
  const auto at = cursor.offset();
  if (cursor.number<std::uint32_t>() != kDirectoryEntry) throw FormatError(at, "there is no directory entry here");
  cursor.take(4);  // versions
  const auto flags = cursor.number<std::uint16_t>(), method = cursor.number<std::uint16_t>();
  cursor.take(8);  // time, date, checksum
  std::uint64_t packed = cursor.number<std::uint32_t>(), size = cursor.number<std::uint32_t>();
  const auto name_bytes = cursor.number<std::uint16_t>(), extra_bytes = cursor.number<std::uint16_t>();
  const auto comment_bytes = cursor.number<std::uint16_t>();
  cursor.take(8);  // disk, attributes
  std::uint64_t local = cursor.number<std::uint32_t>();
  if (name_bytes > kMaxZipName) throw FormatError(at, fmt::format("an entry's name has {} bytes", name_bytes));
  Record record;
  record.entry.name = cursor.text(name_bytes);
  const auto extra_at = cursor.offset();
  read_extra64({cursor.take(extra_bytes), extra_at, "extra field"}, size, packed, local);
  cursor.take(comment_bytes);
  const auto fail = [&](const std::string& why) {
    throw FormatError(at, fmt::format("entry '{}' {}", record.entry.name, why));
  };
  if ((flags & kEncrypted) != 0) fail("is encrypted");
  if (method != kStored) fail(fmt::format("is compressed (method {}); only stored entries are read", method));
  if (size != packed) fail(fmt::format("is stored, yet has {} bytes packed and {} unpacked", packed, size));
  if (local > limit || size > limit) fail(fmt::format("of {} bytes at {} leaves the file", size, local));
  record.entry.size = static_cast<std::int64_t>(size);
  record.local = local;
  return record;
}

/// Finds the entry's bytes behind its local header.
void locate(std::span<const std::byte> archive, std::uint64_t limit, Record& record) {
  auto cursor = cursor_at(archive.first(static_cast<std::size_t>(limit)), record.local, kLocalBytes, "local header");
  const auto at = cursor.offset();
  if (cursor.number<std::uint32_t>() != kLocalHeader) {
    throw FormatError(at, fmt::format("there is no local header of entry '{}' here", record.entry.name));
  }
  cursor.take(22);
  const auto name_bytes = cursor.number<std::uint16_t>(), extra_bytes = cursor.number<std::uint16_t>();
  const std::uint64_t data = record.local + kLocalBytes + name_bytes + extra_bytes;
  if (data > limit || static_cast<std::uint64_t>(record.entry.size) > limit - data) {
    throw FormatError(
        at, fmt::format("entry '{}' of {} bytes at {} leaves the file", record.entry.name, record.entry.size, data));
  }
  auto name = cursor_at(archive, record.local + kLocalBytes, name_bytes, "local name");
  if (name.text(name_bytes) != record.entry.name) {
    throw FormatError(at, fmt::format("entry '{}' has another name in its local header", record.entry.name));
  }
  record.entry.offset = static_cast<std::int64_t>(data);
}

void check_disjoint(std::vector<Record> records) {
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.local < b.local; });
  std::int64_t end = 0;
  for (const Record& record : records) {
    if (static_cast<std::int64_t>(record.local) < end) {
      throw FormatError(static_cast<std::int64_t>(record.local),
                        fmt::format("entry '{}' overlaps the one before it", record.entry.name));
    }
    end = record.entry.offset + record.entry.size;
  }
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> archive) {
  const Directory directory = read_end(archive);
  auto cursor = cursor_at(archive, directory.offset, directory.bytes, "directory");
  if (directory.entries > static_cast<std::uint64_t>(kMaxZipEntries)) {
    throw FormatError(cursor.offset(),
                      fmt::format("{} entries; at most {} are allowed", directory.entries, kMaxZipEntries));
  }
  std::vector<Record> records;
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const auto at = cursor.offset();
    Record record = read_record(cursor, directory.offset);
    locate(archive, directory.offset, record);
    if (!names.insert(record.entry.name).second) {
      throw FormatError(at, fmt::format("entry '{}' appears twice", record.entry.name));
    }
    records.push_back(std::move(record));
  }
  if (!cursor.at_end()) throw FormatError(cursor.offset(), "the directory has bytes behind its last entry");
  check_disjoint(records);
  std::vector<ZipEntry> entries;
  for (Record& record : records) entries.push_back(std::move(record.entry));
  return entries;
}

}  // namespace troupe::model

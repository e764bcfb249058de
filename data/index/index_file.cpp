#include "data/index/index_file.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"

namespace troupe::data {

namespace {

constexpr std::array<char, 8> kMagic = {'T', 'R', 'P', 'I', 'N', 'D', 'E', 'X'};
constexpr std::uint32_t kByteOrder = 0x01020304;
constexpr std::uint32_t kMostSections = 64;
constexpr std::size_t kPart = std::size_t{1} << 20;  // bytes hashed at a time; a multiple of every page size

/// The first bytes of the file. docs/dataset-index.md, "Header".
struct Header {
  std::array<char, 8> magic;
  std::uint32_t byte_order;
  std::uint32_t version;
  std::uint32_t kind;
  std::uint32_t num_sections;
  std::uint64_t file_bytes;
  std::uint64_t covered_end;    ///< the digest covers bytes [sizeof(Header), covered_end)
  std::array<char, 32> digest;  ///< XXH3-128, hex digits
  std::uint64_t header_digest;  ///< XXH3-64 of the bytes before this field
};
static_assert(sizeof(Header) == 80);
constexpr std::size_t kDigested = offsetof(Header, header_digest);

struct SectionPlace {
  std::uint64_t offset, bytes;
};

std::size_t aligned(std::size_t offset) { return (offset + 7) / 8 * 8; }

std::uint64_t header_digest(const Header& header) {
  return xxh3_64(std::as_bytes(std::span(&header, 1)).first(kDigested));
}

}  // namespace

Error IndexFile::damage(const std::string& what) const {
  return {Errc::data_loss, fmt::format("{}: the index is damaged: {}", name_, what)};
}

Result<std::shared_ptr<const IndexFile>> IndexFile::open(const std::string& path, IndexKind kind) {
  TROUPE_ASSIGN(MappedFile mapped, MappedFile::open(path, sizeof(Header)));
  std::shared_ptr<IndexFile> file(new IndexFile());
  file->name_ = path;
  file->mapped_.emplace(std::move(mapped));
  file->bytes_ = file->mapped_->bytes();
  TROUPE_TRY(file->parse(kind));
  return std::shared_ptr<const IndexFile>(std::move(file));
}

Result<std::shared_ptr<const IndexFile>> IndexFile::from_bytes(std::string bytes, IndexKind kind,
                                                               const std::string& name) {
  std::shared_ptr<IndexFile> file(new IndexFile());
  file->name_ = name;
  file->owned_ = std::move(bytes);
  file->bytes_ = std::as_bytes(std::span(file->owned_));
  TROUPE_TRY(file->parse(kind));
  return std::shared_ptr<const IndexFile>(std::move(file));
}

Result<void> IndexFile::parse(IndexKind kind) {
  Header header;
  if (bytes_.size() < sizeof header) return damage(fmt::format("{} bytes", bytes_.size()));
  std::memcpy(&header, bytes_.data(), sizeof header);
  if (header.magic != kMagic) return damage("it does not begin with TRPINDEX");
  if (header.byte_order != kByteOrder) return damage("it was written by a machine of another byte order");
  if (header.version != kIndexVersion) {
    return Error{Errc::data_loss, fmt::format("{}: an index of version {}; this program reads version {}", name_,
                                              header.version, kIndexVersion)};
  }
  if (header.header_digest != header_digest(header)) return damage("its header does not have the digest it states");
  if (header.kind != static_cast<std::uint32_t>(kind)) return damage(fmt::format("it is of kind {}", header.kind));
  if (header.file_bytes != bytes_.size()) {
    return damage(fmt::format("{} bytes, its header says {}", bytes_.size(), header.file_bytes));
  }
  const std::size_t table_end = sizeof header + header.num_sections * sizeof(SectionPlace);
  if (header.num_sections > kMostSections || table_end > header.covered_end || header.covered_end > bytes_.size()) {
    return damage("its sections lie outside the file");
  }
  for (std::uint32_t i = 0; i < header.num_sections; ++i) {
    SectionPlace place;
    std::memcpy(&place, bytes_.data() + sizeof header + i * sizeof place, sizeof place);
    if (place.offset < table_end || place.offset % 8 != 0 || place.offset > bytes_.size() ||
        place.bytes > bytes_.size() - place.offset) {
      return damage(fmt::format("section {} lies outside the file", i));
    }
    sections_.push_back(bytes_.subspan(place.offset, place.bytes));
  }
  return check_digest();
}

Result<void> IndexFile::check_digest() {
  Header header;
  std::memcpy(&header, bytes_.data(), sizeof header);
  // In parts, each of which gives its pages back: checking hundreds of megabytes leaves the process as small as it was.
  Xxh3Stream hash;
  for (std::size_t at = sizeof header; at < header.covered_end;) {
    const std::size_t end = std::min<std::size_t>(at / kPart * kPart + kPart, header.covered_end);
    hash.update(bytes_.subspan(at, end - at));
    if (mapped_)
      ::madvise(const_cast<std::byte*>(bytes_.data()) + at / kPart * kPart, end - at / kPart * kPart, MADV_DONTNEED);
    at = end;
  }
  digest_ = hash.hex();
  if (digest_ == std::string_view(header.digest.data(), header.digest.size())) return {};
  return damage("its contents do not have the digest it states");
}

std::string index_bytes(IndexKind kind, const std::vector<std::string>& sections, std::size_t covered) {
  Header header{.magic = kMagic,
                .byte_order = kByteOrder,
                .version = kIndexVersion,
                .kind = static_cast<std::uint32_t>(kind),
                .num_sections = static_cast<std::uint32_t>(sections.size()),
                .file_bytes = 0,
                .covered_end = 0,
                .digest = {},
                .header_digest = 0};
  std::vector<SectionPlace> places;
  std::size_t at = sizeof header + sections.size() * sizeof(SectionPlace);
  header.covered_end = at;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    at = aligned(at);
    places.push_back({.offset = at, .bytes = sections[i].size()});
    at += sections[i].size();
    if (i < covered) header.covered_end = at;
  }
  header.file_bytes = at;
  std::string out(at, '\0');
  std::memcpy(out.data() + sizeof header, places.data(), places.size() * sizeof(SectionPlace));
  for (std::size_t i = 0; i < sections.size(); ++i) sections[i].copy(out.data() + places[i].offset, sections[i].size());
  const std::string digest =
      xxh3_128_hex(std::as_bytes(std::span(out)).subspan(sizeof header, header.covered_end - sizeof header));
  digest.copy(header.digest.data(), header.digest.size());
  header.header_digest = header_digest(header);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

Result<void> write_index(const std::string& path, std::string_view bytes) {
  TROUPE_TRY(make_folders(std::filesystem::path(path).parent_path().string()));
  return write_file_durably(path, bytes);
}

}  // namespace troupe::data

#include "data/video/mp4_facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/file_io.h"

namespace troupe::data {

namespace {

using Bytes = std::span<const std::byte>;
constexpr std::uint64_t kMostMoov = std::uint64_t{64} << 20;
constexpr int kMostTopLevel = 1000;  // boxes; fragmented files, which have more, are another format

/// A big-endian number of `bytes` bytes at `at`; 0 past the end.
std::uint64_t big(Bytes from, std::size_t at, std::size_t bytes) {
  if (at > from.size() || bytes > from.size() - at) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(from[at + i]);
  return value;
}

bool is_type(Bytes box, std::string_view type) {
  if (box.size() < 8) return false;
  for (std::size_t i = 0; i < 4; ++i) {
    if (std::to_integer<char>(box[4 + i]) != type[i]) return false;
  }
  return true;
}

/// Size of the box that begins at these bytes, of which `left` exist; 0 when it cannot be.
std::uint64_t box_size(Bytes head, std::uint64_t left) {
  std::uint64_t size = big(head, 0, 4);
  if (size == 1)
    size = big(head, 8, 8);
  else if (size == 0)
    size = left;
  return size < 8 || size > left ? 0 : size;
}

/// The first child of that type: `parent` begins behind its own header. nullopt: none.
std::optional<Bytes> child(Bytes parent, std::string_view type) {
  while (parent.size() >= 8) {
    const std::uint64_t size = box_size(parent, parent.size());
    if (size == 0) return std::nullopt;
    const Bytes box = parent.first(static_cast<std::size_t>(size));
    if (is_type(box, type)) return box.subspan(8);
    parent = parent.subspan(static_cast<std::size_t>(size));
  }
  return std::nullopt;
}

std::optional<Bytes> descend(Bytes box, std::initializer_list<std::string_view> types) {
  std::optional<Bytes> at = box;
  for (const std::string_view type : types) {
    at = child(*at, type);
    if (!at) return std::nullopt;
  }
  return at;
}

/// True when the edit list does more than start at a media time of the first frame.
bool edits(Bytes elst) {
  const bool wide = big(elst, 0, 1) == 1;
  return big(elst, 4, 4) > 1 ||
         (big(elst, 4, 4) == 1 && big(elst, wide ? 16 : 12, wide ? 8 : 4) >> (wide ? 63 : 31) != 0);
}

std::optional<Mp4Facts> facts_of(Bytes moov) {
  for (Bytes rest = moov; rest.size() >= 8;) {
    const std::uint64_t size = box_size(rest, rest.size());
    if (size == 0) return std::nullopt;
    const Bytes box = rest.first(static_cast<std::size_t>(size));
    rest = rest.subspan(static_cast<std::size_t>(size));
    if (!is_type(box, "trak")) continue;
    const Bytes track = box.subspan(8);
    const auto handler = descend(track, {"mdia", "hdlr"});
    if (!handler || big(*handler, 8, 4) != 0x76696465) continue;  // 'vide'
    Mp4Facts facts;
    if (const auto header = descend(track, {"mdia", "mdhd"})) {
      facts.timescale = static_cast<std::uint32_t>(big(*header, big(*header, 0, 1) == 1 ? 20 : 12, 4));
    }
    if (const auto list = descend(track, {"edts", "elst"})) facts.edit_list = edits(*list);
    return facts;
  }
  return std::nullopt;
}

/// Finds moov among the top-level boxes; `fast_start` says whether mdat came first.
Result<std::vector<std::byte>> read_moov(int fd, const std::string& path, bool& fast_start) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return Error{Errc::data_loss, path + ": not a regular file"};
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  fast_start = true;
  std::uint64_t at = 0;
  for (int i = 0; i < kMostTopLevel && at + 8 <= bytes; ++i) {
    std::byte head[16] = {};
    TROUPE_ASSIGN(const std::size_t got, read_at(fd, head, at, path));
    if (got < 8) break;
    const std::uint64_t size = box_size(head, bytes - at);
    if (size == 0) break;
    if (is_type(head, "mdat")) fast_start = false;
    if (is_type(head, "moov")) {
      if (size > kMostMoov) break;
      std::vector<std::byte> moov(static_cast<std::size_t>(size));
      TROUPE_ASSIGN(const std::size_t filled, read_at(fd, moov, at, path));
      if (filled < moov.size()) break;
      return moov;
    }
    at += size;
  }
  return Error{Errc::data_loss, fmt::format("{}: no index (moov) of at most {} bytes was found", path, kMostMoov)};
}

}  // namespace

Result<Mp4Facts> read_mp4_facts(const std::string& path) {
  TROUPE_ASSIGN(const FileDescriptor fd, open_file(path, O_RDONLY | O_NONBLOCK));
  bool fast_start = false;
  TROUPE_ASSIGN(const auto moov, read_moov(fd.get(), path, fast_start));
  auto facts = facts_of(Bytes(moov).subspan(8));
  if (!facts) return Error{Errc::data_loss, path + ": its index describes no video track"};
  facts->fast_start = fast_start;
  return *facts;
}

}  // namespace troupe::data

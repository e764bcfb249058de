#include "data/index/path_table.h"

#include <algorithm>

#include "base/byte_stream.h"

namespace troupe::data {

namespace {

constexpr std::size_t kGroup = 16;

/// Replaces `path` by the entry at the reader; false when the entry cannot be.
bool next_path(ByteReader& in, std::string& path) {
  const std::uint64_t shared = in.varint();
  const std::string_view rest = in.text();
  if (!in.ok() || shared > path.size()) return false;
  path.resize(static_cast<std::size_t>(shared));
  path += rest;
  return true;
}

bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = path.find(".."); at != std::string_view::npos; at = path.find("..", at + 1)) {
    const bool begins = at == 0 || path[at - 1] == '/';
    const bool ends = at + 2 == path.size() || path[at + 2] == '/';
    if (begins && ends) return false;
  }
  return true;
}

}  // namespace

std::string PathTable::encode(std::span<const std::string> paths) {
  ByteWriter out;
  out.varint(paths.size());
  std::string_view before;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string_view path = paths[i];
    std::size_t shared = 0;
    if (i % kGroup != 0) {
      const auto differs = std::mismatch(path.begin(), path.end(), before.begin(), before.end());
      shared = static_cast<std::size_t>(differs.first - path.begin());
    }
    out.varint(shared);
    out.text(path.substr(shared));
    before = path;
  }
  return out.take();
}

Result<PathTable> PathTable::parse(std::span<const std::byte> bytes) {
  const Error damaged{Errc::data_loss, "the list of files cannot be read"};
  PathTable table;
  ByteReader in(bytes);
  table.size_ = in.count(2);
  if (!in.ok()) return damaged;
  table.entries_ = bytes.subspan(bytes.size() - in.left());
  if (table.entries_.size() > UINT32_MAX) return damaged;
  std::string path, before;
  for (std::size_t i = 0; i < table.size_; ++i) {
    if (i % kGroup == 0) {
      table.restarts_.push_back(static_cast<std::uint32_t>(table.entries_.size() - in.left()));
      path.clear();
    }
    if (!next_path(in, path) || !stays_inside(path) || (i > 0 && path <= before)) return damaged;
    before = path;
  }
  if (!in.at_end()) return damaged;
  return table;
}

std::string PathTable::at(std::size_t i) const {
  ByteReader in(entries_.subspan(restarts_[i / kGroup]));
  std::string path;
  for (std::size_t k = 0; k <= i % kGroup; ++k) next_path(in, path);
  return path;
}

std::optional<std::size_t> PathTable::find(std::string_view path) const {
  // the last group whose first path is not behind the wanted one
  std::size_t low = 0, high = restarts_.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    if (at(middle * kGroup) <= path)
      low = middle;
    else
      high = middle;
  }
  if (low >= restarts_.size()) return std::nullopt;
  ByteReader in(entries_.subspan(restarts_[low]));
  std::string candidate;
  for (std::size_t i = low * kGroup; i < std::min(size_, (low + 1) * kGroup); ++i) {
    next_path(in, candidate);
    if (candidate == path) return i;
  }
  return std::nullopt;
}

}  // namespace troupe::data

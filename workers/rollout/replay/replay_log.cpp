#include "workers/rollout/replay/replay_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "TRPITEM1";
constexpr std::size_t kItemHead = 24;

std::string file_name(std::int64_t step, std::int64_t rank) {
  return fmt::format("step-{:09d}-rank-{}.items", step, rank);
}

struct ReplayFile {
  std::int64_t step = 0, rank = 0;
  std::string path;
};

std::optional<ReplayFile> parse_name(const fs::path& path) {
  long long step = 0, rank = 0;
  int end = 0;
  const std::string name = path.filename().string();
  if (std::sscanf(name.c_str(), "step-%lld-rank-%lld.items%n", &step, &rank, &end) != 2 ||
      static_cast<std::size_t>(end) != name.size()) {
    return std::nullopt;
  }
  return ReplayFile{.step = step, .rank = rank, .path = path.string()};
}

std::vector<ReplayFile> list_files(const std::string& folder) {
  std::vector<ReplayFile> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (auto file = parse_name(entry.path())) files.push_back(std::move(*file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::pair{a.step, a.rank} < std::pair{b.step, b.rank};
  });
  return files;
}

void put_u64(std::string& out, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

std::uint64_t get_u64(const std::string& text, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
  return value;
}

Result<void> read_file_items(const std::string& path, std::map<std::int64_t, CollectedItem>& items) {
  const auto damaged = [&](std::size_t at) {
    return Error{Errc::data_loss, fmt::format("{}: damaged at byte {}", path, at)};
  };
  TROUPE_ASSIGN(const std::string text, read_file(path));
  if (!text.starts_with(kMagic)) return damaged(0);
  for (std::size_t at = kMagic.size(); at < text.size();) {
    if (text.size() - at < kItemHead) return damaged(at);
    const std::uint64_t count = get_u64(text, at + 8), hash = get_u64(text, at + 16);
    if (text.size() - at - kItemHead < count) return damaged(at);
    CollectedItem item{
        .position = static_cast<std::int64_t>(get_u64(text, at)), .xxh3 = hash, .bytes = std::vector<std::byte>(count)};
    std::memcpy(item.bytes.data(), text.data() + at + kItemHead, count);
    if (xxh3_64(std::span<const std::byte>(item.bytes)) != hash) return damaged(at);
    at += kItemHead + count;
    items[item.position] = std::move(item);
  }
  return {};
}

}  // namespace

Result<void> ReplayLog::append(std::int64_t step, std::span<const CollectedItem> items) const {
  TROUPE_TRY(make_folders_durably(folder_));
  std::string text(kMagic);
  for (const CollectedItem& item : items) {
    put_u64(text, static_cast<std::uint64_t>(item.position));
    put_u64(text, item.bytes.size());
    put_u64(text, item.xxh3);
    text.append(reinterpret_cast<const char*>(item.bytes.data()), item.bytes.size());
  }
  make_room(step, static_cast<std::int64_t>(text.size()));
  return write_file_durably(folder_ + "/" + file_name(step, rank_), text);
}

void ReplayLog::make_room(std::int64_t step, std::int64_t bytes) const {
  if (max_bytes_ == 0) return;
  std::vector<std::pair<std::string, std::int64_t>> files;  // oldest first
  std::int64_t all = bytes;
  for (const ReplayFile& file : list_files(folder_)) {
    // the step's own file, of a life before, is replaced
    if (file.rank % world_ != rank_ || (file.step == step && file.rank == rank_)) continue;
    std::error_code code;
    const std::uintmax_t size = fs::file_size(file.path, code);
    if (code) continue;
    files.emplace_back(file.path, static_cast<std::int64_t>(size));
    all += files.back().second;
  }
  for (const auto& [path, size] : files) {
    if (all <= max_bytes_) return;
    std::error_code ignored;  // as in keep()
    fs::remove(path, ignored);
    all -= size;
  }
}

Result<void> ReplayLog::read(std::int64_t first, std::int64_t end,
                             const std::function<Result<void>(const CollectedItem&)>& visit) const {
  const std::vector<ReplayFile> files = list_files(folder_);
  for (std::size_t i = 0; i < files.size();) {
    // one step of all ranks, whose positions interleave
    std::map<std::int64_t, CollectedItem> items;
    const std::int64_t step = files[i].step;
    for (; i < files.size() && files[i].step == step; ++i) {
      if (step >= first && step < end) TROUPE_TRY(read_file_items(files[i].path, items));
    }
    for (const auto& [position, item] : items) TROUPE_TRY(visit(item));
  }
  return {};
}

void ReplayLog::keep(std::int64_t first, std::int64_t end) const {
  for (const ReplayFile& file : list_files(folder_)) {
    std::error_code ignored;  // a file that stays is read again or replaced; it takes space, nothing else
    if (file.rank % world_ == rank_ && (file.step < first || file.step >= end)) fs::remove(file.path, ignored);
  }
}

}  // namespace troupe::workers

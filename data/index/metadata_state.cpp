#include "data/index/metadata_state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/file_io.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "data/lerobot/episodes_table.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_of(const std::string& root) {
  std::vector<std::string> names;
  std::error_code code;
  for (const char* name : {"info.json", "episodes.jsonl", "tasks.jsonl", "tasks.parquet", "modality.json", "stats.json",
                           "relative_stats_dreamzero.json", "step_filter.jsonl"}) {
    const std::string relative = std::string("meta/") + name;
    if (fs::exists(root + "/" + relative, code)) names.push_back(relative);
  }
  for (const std::string& path : episode_table_files(root)) names.push_back(path.substr(root.size() + 1));
  std::sort(names.begin(), names.end());
  return names;
}

Result<MetadataFile> read_state(const std::string& root, const std::string& name) {
  const std::string path = root + "/" + name;
  TROUPE_ASSIGN(const FileDescriptor fd, open_file(path, O_RDONLY | O_NONBLOCK));
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return Error{Errc::data_loss, path + ": not a regular file"};
  Xxh3Stream hash;
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  std::uint64_t size = 0;
  for (std::size_t n = buffer.size(); n == buffer.size(); size += n) {
    TROUPE_ASSIGN(n, read_at(fd.get(), buffer, size, path));
    hash.update(std::span(buffer).first(n));
  }
  return MetadataFile{.name = name, .size = static_cast<std::int64_t>(size), .digest = hash.hex()};
}

}  // namespace

Result<std::vector<MetadataFile>> metadata_state(const std::string& root, std::int64_t threads) {
  const std::vector<std::string> names = names_of(root);
  std::vector<std::optional<Result<MetadataFile>>> read(names.size());
  parallel_for(names.size(), threads, [&](std::size_t i) { read[i].emplace(read_state(root, names[i])); });
  std::vector<MetadataFile> out;
  for (auto& file : read) {
    if (!*file) return file->error();
    out.push_back(std::move(**file));
  }
  return out;
}

}  // namespace troupe::data

#include "data/health/index_check.h"

#include <fmt/format.h>

#include <filesystem>

#include "data/index/file_times.h"
#include "data/index/index_folder.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// Lists of samples in an index folder: samples-<recipe>.idx. Returns whether all of them could be removed.
bool remove_sample_lists(const std::string& folder) {
  if (!is_writable_folder(folder)) return false;
  std::error_code code;
  std::vector<fs::path> lists;
  for (auto it = fs::directory_iterator(folder, code); !code && it != fs::directory_iterator(); it.increment(code)) {
    const std::string name = it->path().filename();
    if (name.rfind("samples-", 0) == 0 && it->path().extension() == ".idx") lists.push_back(it->path());
  }
  bool all = !code;
  for (const fs::path& list : lists) all = (fs::remove(list, code) || !code) && all;
  return all;
}

}  // namespace

void check_index(const std::string& root, const IndexConfig& config, std::vector<HealthFinding>& findings) {
  const IndexFolders folders = index_folders(root, config);
  FileTimes times(root);
  if (!folders.times.empty()) times.load(folders.times);
  for (const std::string& folder : folders.read) {
    auto file = IndexFile::open(folder + "/files.idx", IndexKind::files);
    if (!file) continue;
    const auto table = FileTable::open(std::move(*file));
    if (!table) continue;
    const std::size_t before = findings.size();
    for (std::size_t i = 0; i < (*table)->size(); ++i) {
      const auto entry = (*table)->entry(i);
      const std::string path = root + "/" + (*table)->path(i);
      if (!entry || times.is_unchanged((*table)->path(i), entry->state)) continue;
      findings.push_back(
          {"D16", FindingLevel::warning, path,
           fmt::format(
               "{} is not the file that was indexed in {}; its entry is made anew when the dataset is opened next",
               path, folder),
           -1});
    }
    if (findings.size() > before && !remove_sample_lists(folder))
      findings.back().text += " (its lists of samples cannot be removed; set data.index.build: rebuild once)";
  }
}

}  // namespace troupe::data

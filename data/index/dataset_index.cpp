#include "data/index/dataset_index.h"

#include <atomic>
#include <chrono>

#include "base/hash.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/stopwatch.h"
#include "data/index/index_folder.h"

namespace troupe::data {

namespace {

/// Replaced files that are named; after a copy without times it is all of them.
constexpr std::int64_t kLogged = 10;
/// Seconds of making an index after which somebody may have wondered.
constexpr double kWorthALine = 5;

/// The parts of an index that could be read from one folder.
struct Found {
  std::string folder;
  std::shared_ptr<const SampleTable> samples;
  std::shared_ptr<const FileTable> files;
};

std::string samples_name(std::uint64_t recipe) { return "samples-" + to_hex(recipe) + ".idx"; }

/// A table of an index file, or null: without a word when there is none, with a warning when it is damaged.
template <class Table>
std::shared_ptr<const Table> load(const std::string& path, IndexKind kind) {
  auto file = IndexFile::open(path, kind);
  auto table = file ? Table::open(std::move(*file)) : Result<std::shared_ptr<const Table>>(file.error());
  if (table) return *table;
  if (table.error().code() != Errc::not_found) log::warn("{}; it is made anew", table.error().message());
  return nullptr;
}

Found find_index(const IndexFolders& folders, std::uint64_t recipe) {
  Found out;
  for (const std::string& folder : folders.read) {
    if (out.samples == nullptr) {
      out.samples = load<SampleTable>(folder + "/" + samples_name(recipe), IndexKind::samples);
      if (out.samples != nullptr) out.folder = folder;
    }
    if (out.files == nullptr) out.files = load<FileTable>(folder + "/files.idx", IndexKind::files);
  }
  return out;
}

/// How many files are not what they were when they were indexed; the first ones are logged (D16).
std::int64_t count_replaced(const SampleTable& samples, const std::string& root, FileTimes& times,
                            const DatasetOptions& options) {
  std::vector<std::uint32_t> which(samples.watched().begin(), samples.watched().end());
  if (options.verify_files || static_cast<std::int64_t>(samples.num_paths()) <= options.compared_files) {
    which.resize(samples.num_paths());
    for (std::size_t i = 0; i < which.size(); ++i) which[i] = static_cast<std::uint32_t>(i);
  }
  std::atomic<std::int64_t> replaced{0};
  parallel_for(which.size(), options.threads, [&](std::size_t i) {
    const std::string path = samples.path(which[i]);
    if (times.is_unchanged(path, samples.state(which[i]))) return;
    if (replaced++ < kLogged)
      log::warn("D16 {}/{} is not the file that was indexed; its entry is made anew", root, path);
  });
  if (replaced > kLogged) log::warn("D16 {}: {} files are not those that were indexed", root, replaced.load());
  return replaced;
}

/// Opens bytes that were just made: from the file, so that memory is shared, unless another process has put a different
/// one there meanwhile or it cannot be written.
Result<std::shared_ptr<const IndexFile>> publish(const std::string& folder, const std::string& name, IndexKind kind,
                                                 std::string bytes, bool& written) {
  TROUPE_ASSIGN(auto memory, IndexFile::from_bytes(std::move(bytes), kind, name));
  if (folder.empty()) return memory;
  const std::string path = folder + "/" + name;
  if (const auto done = write_index(path, memory->bytes()); !done) {
    log::warn("{}; the index stays in memory", done.error().message());
    written = false;
    return memory;
  }
  auto file = IndexFile::open(path, kind);
  return file && (*file)->digest() == memory->digest() ? *file : memory;
}

}  // namespace

Result<OpenedIndex> open_index(const std::string& root, const DatasetSpec& spec, const SampleColumns& columns,
                               const DatasetOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t recipe = recipe_digest(spec);
  IndexInputs inputs{.spec = spec,
                     .columns = columns,
                     .probe = options.probe,
                     .threads = options.threads,
                     .metadata = {},
                     .old_samples = nullptr,
                     .old_files = nullptr,
                     .times = nullptr};
  TROUPE_ASSIGN(inputs.metadata, metadata_state(root, options.threads));
  const bool on_disk = spec.index.build != "never";
  const IndexFolders folders = on_disk ? index_folders(root, spec.index) : IndexFolders{};
  OpenedIndex out;
  out.times = std::make_shared<FileTimes>(root);
  if (!folders.times.empty()) out.times->load(folders.times);
  inputs.times = out.times.get();
  if (spec.index.build == "auto") {
    Found found = find_index(folders, recipe);
    if (found.samples && found.files && found.samples->metadata() == inputs.metadata &&
        count_replaced(*found.samples, root, *out.times, options) == 0) {
      if (!folders.times.empty()) out.times->save(folders.times);
      out.times->settle();
      out.report.folder = found.folder;
      out.report.loaded = true;
      out.samples = std::move(found.samples);
      out.files = std::move(found.files);
      return out;
    }
    inputs.old_samples = std::move(found.samples);
    inputs.old_files = std::move(found.files);
  }
  TROUPE_ASSIGN(LerobotDataset dataset, LerobotDataset::open(root, options.probe));
  TROUPE_ASSIGN(BuiltIndex built, build_index(std::move(dataset), inputs, out.report));
  if (on_disk && folders.write.empty()) {
    log::warn("{}: no folder for its index can be written; every process makes its own (data.index.path names another)",
              root);
  }
  // an index without samples has no statistics: what is wrong is told, and looked at anew next time
  bool written = !folders.write.empty() && built.samples.summary.train_size > 0;
  const std::string folder = written ? folders.write : std::string();
  TROUPE_ASSIGN(auto files, publish(folder, "files.idx", IndexKind::files, built.files.finish(), written));
  TROUPE_ASSIGN(auto samples,
                publish(folder, samples_name(recipe), IndexKind::samples, encode_samples(built.samples), written));
  TROUPE_ASSIGN(out.files, FileTable::open(std::move(files)));
  TROUPE_ASSIGN(out.samples, SampleTable::open(std::move(samples)));
  if (!folders.times.empty()) out.times->save(folders.times);
  out.times->settle();
  out.report.folder = written ? folder : std::string();
  out.report.seconds = seconds_since(begin);
  if (out.report.seconds > kWorthALine) {
    log::info("{}: index made in {:.1f} s: {} episodes checked, {} taken over", root, out.report.seconds,
              out.report.episodes_checked, out.report.episodes_reused);
  }
  return out;
}

}  // namespace troupe::data

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/append_file.h"
#include "base/fault.h"
#include "data/convert/episode_stats.h"
#include "data/convert/finished_file.h"
#include "data/convert/metadata.h"
#include "data/lerobot/image_feature.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// A file of lines under its part name until close().
class LineFile {
 public:
  static Result<LineFile> open(const std::string& path) {
    TROUPE_TRY(fault_point("convert.metadata", path));
    TROUPE_TRY(make_parent(path));
    std::error_code absent;
    fs::remove(part_name(path), absent);  // what an attempt that was killed left
    TROUPE_ASSIGN(AppendFile file, AppendFile::open(part_name(path), AppendFile::Open::exclusive));
    return LineFile(path, std::move(file));
  }
  Result<void> write(const JsonDoc& json) { return file_.append(json.dump() + "\n"); }
  Result<void> write_text(std::string_view text) { return file_.append(text); }
  Result<void> close() {
    TROUPE_TRY(file_.flush());
    return finish_file(path_);
  }

 private:
  LineFile(std::string path, AppendFile file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  AppendFile file_;
};

/// Files of meta/ that the versions define, which are written anew.
bool defined_file(const std::string& name) {
  return name == "info.json" || name == "episodes.jsonl" || name == "tasks.jsonl" || name == "episodes_stats.jsonl" ||
         name == "stats.json" || name == "tasks.parquet" || name.starts_with("episodes/");
}

/// Values over all episodes, which are wrong once datasets are merged or episodes left out.
bool dataset_statistics_file(const std::string& name) {
  return name == "relative_stats_dreamzero.json" || name == "relative_horizon_stats_dreamzero.json" ||
         name == "metadata.json";
}

/// What the output has folders for: a file of such a name, which no version of LeRobot writes, has no place there.
bool is_folder_of_output(const std::string& name) {
  return name == "meta" || name == "data" || name == "videos" || name == ".troupe";
}

/// Relative paths of the files to carry, ascending.
std::vector<std::string> carried(const std::string& root) {
  std::vector<std::string> out;
  std::error_code failed, dangling;
  for (fs::recursive_directory_iterator it(root + "/meta", failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().lexically_relative(root + "/meta").string();
    if (it->is_regular_file(dangling) && !defined_file(name)) out.push_back("meta/" + name);
  }
  for (fs::directory_iterator it(root, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    if (it->is_regular_file(dangling) && !is_folder_of_output(name)) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<void> copy_bytes(const std::string& from, LineFile& to) {
  std::ifstream in(from, std::ios::binary);
  std::string block(1 << 16, '\0');
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    TROUPE_TRY(to.write_text(std::string_view(block).substr(0, static_cast<std::size_t>(in.gcount()))));
  }
  if (!in.eof()) return Error{Errc::data_loss, fmt::format("{} cannot be read to its end", from)};
  return {};
}

Result<bool> same_contents(const std::string& a, const std::string& b) {
  std::ifstream x(a, std::ios::binary), y(b, std::ios::binary);
  std::string p(1 << 16, '\0'), q = p;
  while (x && y) {
    x.read(p.data(), static_cast<std::streamsize>(p.size()));
    y.read(q.data(), static_cast<std::streamsize>(q.size()));
    if (x.gcount() != y.gcount() ||
        p.compare(0, static_cast<std::size_t>(x.gcount()), q, 0, static_cast<std::size_t>(y.gcount())) != 0)
      return false;
  }
  if (!x.eof() || !y.eof()) return Error{Errc::data_loss, fmt::format("{} or {} cannot be read", a, b)};
  return true;
}

/// Lines of .jsonl files of all sources; a line that names an episode gets its new number or is left out with it.
Result<void> carry_lines(const ConvertContext& context, const std::string& name) {
  TROUPE_ASSIGN(LineFile out, LineFile::open(context.out + "/" + name));
  for (std::size_t s = 0; s < context.sources.size(); ++s) {
    std::map<std::int64_t, std::int64_t> number;
    for (const PlannedEpisode& e : context.plan.episodes) {
      if (e.source == s) number[context.source_of(e).index] = e.index;
    }
    std::ifstream in(context.sources[s].root + "/" + name, std::ios::binary);
    std::string line;
    while (std::getline(in, line)) {
      auto json = parse_json<JsonDoc>(line);
      const bool names_one =
          json && json->is_object() && json->contains("episode_index") && (*json)["episode_index"].is_number_integer();
      if (!names_one) {
        TROUPE_TRY(out.write_text(line + "\n"));
        continue;
      }
      const auto found = number.find((*json)["episode_index"].get<std::int64_t>());
      if (found == number.end()) continue;
      (*json)["episode_index"] = found->second;
      TROUPE_TRY(out.write(*json));
    }
  }
  return out.close();
}

/// modality.json without the cameras that were dropped; of a repair, without keys whose column info.json lacks.
Result<void> carry_modality(const ConvertContext& context, const DatasetSource& source, const std::string& name,
                            std::vector<std::string>& notes) {
  auto read = read_json_file(source.root + "/" + name);
  if (!read && context.request.repair) {
    notes.push_back(read.error().message() + "; it is not carried");
    return {};
  }
  if (!read) return read.error();
  JsonDoc modality = std::move(*read);
  const std::map<std::string, std::string> usual = {{"video", std::string(kImageFeaturePrefix)},
                                                    {"annotation", "annotation."}};
  for (const char* section : {"state", "action", "video", "annotation"}) {
    if (!modality.is_object() || !modality.contains(section) || !modality[section].is_object()) continue;
    JsonDoc kept = JsonDoc::object();
    for (const auto& [key, value] : modality[section].items()) {
      std::string column = section == std::string("action") ? "action" : "observation.state";
      if (const auto prefix = usual.find(section); prefix != usual.end()) column = prefix->second + key;
      if (value.is_object() && value.contains("original_key") && value["original_key"].is_string())
        column = value["original_key"].get<std::string>();
      const bool is_dropped = std::count(source.dropped.begin(), source.dropped.end(), column) > 0;
      const bool is_unknown = context.request.repair && source.facts.find(column) == nullptr;
      if (is_unknown && !is_dropped)
        notes.push_back(fmt::format("{}: {}.{} is left out: there is no column '{}'", name, section, key, column));
      if (!is_dropped && !is_unknown) kept[key] = value;
    }
    modality[section] = std::move(kept);
  }
  return write_finished(context.out + "/" + name, modality.dump(4));
}

}  // namespace

Result<void> write_metadata_v21(const ConvertContext& context, OutputStats& stats, JsonDoc& sum) {
  const std::string meta = context.out + "/meta/";
  TROUPE_ASSIGN(LineFile tasks, LineFile::open(meta + "tasks.jsonl"));
  for (const auto& [index, text] : context.plan.texts) TROUPE_TRY(tasks.write({{"task_index", index}, {"task", text}}));
  TROUPE_TRY(tasks.close());
  TROUPE_ASSIGN(LineFile episodes, LineFile::open(meta + "episodes.jsonl"));
  TROUPE_ASSIGN(LineFile episode_stats, LineFile::open(meta + "episodes_stats.jsonl"));
  StatsSum total;
  for (std::size_t i = 0; i < context.plan.episodes.size(); ++i) {
    const PlannedEpisode& e = context.plan.episodes[i];
    const SourceEpisode& source = context.source_of(e);
    JsonDoc line = {{"episode_index", e.index}, {"tasks", source.tasks}, {"length", e.length}};
    if (source.extra.is_object()) {
      for (const auto& [name, value] : source.extra.items()) line[name] = value;
    }
    TROUPE_TRY(episodes.write(line));
    TROUPE_ASSIGN(const JsonDoc own, stats.of(i));
    if (const auto added = total.add(own); !added) return added.error().with(context.sources[e.source].root + "/meta");
    TROUPE_TRY(episode_stats.write({{"episode_index", e.index}, {"stats", own}}));
  }
  sum = total.finish();
  TROUPE_TRY(episodes.close());
  return episode_stats.close();
}

Result<void> carry_files(const ConvertContext& context, std::vector<std::string>& notes) {
  std::map<std::string, std::vector<std::size_t>> files;
  for (std::size_t s = 0; s < context.sources.size(); ++s) {
    for (const std::string& name : carried(context.sources[s].root)) files[name].push_back(s);
  }
  const bool others = context.sources.size() > 1 || context.plan.partial;
  for (const auto& [name, owners] : files) {
    const DatasetSource& owner = context.sources[owners[0]];
    const bool of_cameras = name == "meta/metadata.json" && !owner.dropped.empty();
    if (of_cameras || (others && name.starts_with("meta/") && dataset_statistics_file(name.substr(5)))) {
      notes.push_back(fmt::format(
          "{} is not carried: it is of other episodes or cameras; `troupe stats --write-metadata` makes it anew",
          name));
      continue;
    }
    if (context.plan.renumbered && name.ends_with(".jsonl")) {
      TROUPE_TRY(carry_lines(context, name));
      continue;
    }
    const std::string first = owner.root + "/" + name;
    for (std::size_t o = 1; o < owners.size(); ++o) {
      const std::string other = context.sources[owners[o]].root + "/" + name;
      TROUPE_ASSIGN(const bool same, same_contents(first, other));
      if (same) continue;
      if (name == "meta/modality.json")
        return invalid_argument(
            fmt::format("{} and {} differ; datasets that are merged name their columns alike", first, other));
      notes.push_back(
          fmt::format("{} is that of {}; {} has another", name, owner.root, context.sources[owners[o]].root));
    }
    if (name == "meta/modality.json" && (context.request.repair || !owner.dropped.empty())) {
      TROUPE_TRY(carry_modality(context, owner, name, notes));
      continue;
    }
    TROUPE_ASSIGN(LineFile out, LineFile::open(context.out + "/" + name));
    TROUPE_TRY(copy_bytes(first, out));
    TROUPE_TRY(out.close());
  }
  return {};
}

}  // namespace troupe::data

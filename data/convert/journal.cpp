#include "data/convert/journal.h"

#include <fmt/format.h>

#include <fstream>

#include "base/durable_file.h"
#include "base/fault.h"

namespace troupe::data {

using Json = nlohmann::ordered_json;

Result<ConvertJournal> ConvertJournal::open(const std::string& path, std::size_t tasks) {
  TROUPE_ASSIGN(AppendFile file, AppendFile::open(path, AppendFile::Open::resume));
  ConvertJournal journal(path, std::move(file));
  std::ifstream in(path, std::ios::binary);
  std::string line;
  std::uint64_t offset = 0;
  while (std::getline(in, line)) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("task") || !json["task"].is_number_unsigned() ||
        json["task"].get<std::size_t>() >= tasks) {
      return Error{
          Errc::data_loss,
          fmt::format("{} at byte {} is no entry of this plan; remove the output and begin again", path, offset)};
    }
    journal.places_[json["task"].get<std::size_t>()] = offset;
    offset += line.size() + 1;
  }
  return journal;
}

Result<Json> ConvertJournal::entry(std::size_t task) const {
  const auto found = places_.find(task);
  if (found == places_.end()) return Error{Errc::not_found, fmt::format("{}: task {} is not finished", path_, task)};
  std::ifstream in(path_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(found->second));
  std::string line;
  std::getline(in, line);
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || json.value("task", task + 1) != task)
    return Error{Errc::data_loss, fmt::format("{} has changed meanwhile", path_)};
  return json;
}

Result<void> ConvertJournal::append(std::size_t task, const Json& entry) {
  TROUPE_TRY(fault_point("convert.journal", fmt::format("task {}", task)));
  Json line = {{"task", task}};
  line.update(entry);
  const std::lock_guard lock(*mutex_);
  const std::uint64_t at = file_.size();
  TROUPE_TRY(file_.append(line.dump() + "\n"));
  TROUPE_TRY(file_.flush());
  TROUPE_TRY(sync_file(path_));
  places_[task] = at;
  return {};
}

}  // namespace troupe::data

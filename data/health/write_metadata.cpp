#include "data/health/write_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/durable_file.h"
#include "base/hash.h"
#include "data/index/index_folder.h"
#include "data/lerobot/file_checks.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
/// Hashes of what was written under a name: before and, while a write is under way, after.
using Ledger = std::map<std::string, std::vector<std::string>>;

constexpr const char* kLedger = "troupe_written.json";

std::string hash_of(const std::string& text) {
  return xxh3_128_hex(std::as_bytes(std::span(text.data(), text.size())));
}

Result<Ledger> read_ledger(const std::string& path) {
  Ledger out;
  std::error_code absent;
  if (!fs::exists(path, absent)) return out;
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  const auto damaged = [&](const std::string& why) {
    return Error{Errc::data_loss,
                 fmt::format("{}: {}; delete it: files beside it then count as written by someone else", path, why)};
  };
  const auto json = parse_json<Json>(text);
  if (!json) return damaged(json.error().message());
  try {
    for (const auto& [name, hashes] : json->at("files").items()) out[name] = hashes.get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& e) {
    return damaged(e.what());
  }
  return out;
}

std::string ledger_text(const Ledger& ledger) {
  Json files = Json::object();
  for (const auto& [name, hashes] : ledger) files[name] = hashes;
  return Json{{"format", "troupe-written"}, {"version", 1}, {"files", files}}.dump(1) + "\n";
}

/// The contents of a file, or nothing when there is none.
Result<std::optional<std::string>> contents(const std::string& path) {
  std::error_code code;
  if (fs::symlink_status(path, code).type() == fs::file_type::not_found) return std::optional<std::string>();
  if (fs::is_regular_file(path, code) && fs::file_size(path, code) == 0) return std::optional<std::string>("");
  TROUPE_ASSIGN(std::string text, read_text_file(path));
  return std::optional(std::move(text));
}

Result<void> make_folder(const std::string& folder, const std::string& out_option) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!code && is_writable_folder(folder)) return {};
  const std::string why = code ? code.message() : "it is read-only";
  return Error{Errc::failed_precondition,
               fmt::format("{} cannot be written to ({}); {} writes elsewhere", folder, why, out_option)};
}

}  // namespace

Result<std::vector<MetadataOutcome>> write_metadata(const std::string& folder, std::span<const MetaText> files,
                                                    const std::string& out_option) {
  using Kind = MetadataOutcome::Kind;
  const std::string ledger_path = folder + "/" + kLedger;
  std::vector<MetadataOutcome> out;
  TROUPE_ASSIGN(Ledger ledger, read_ledger(ledger_path));
  for (const MetaText& file : files) {
    MetadataOutcome outcome{Kind::written, folder + "/" + file.name};
    TROUPE_ASSIGN(const auto there, contents(outcome.path));
    if (there) {
      const auto& ours = ledger[file.name];
      const bool known = std::find(ours.begin(), ours.end(), hash_of(*there)) != ours.end();
      outcome.kind = *there == file.text ? Kind::unchanged : known ? Kind::written : Kind::kept;
    }
    out.push_back(std::move(outcome));
  }
  std::erase_if(ledger, [](const auto& entry) { return entry.second.empty(); });
  if (std::none_of(out.begin(), out.end(), [](const auto& o) { return o.kind == Kind::written; })) return out;

  TROUPE_TRY(make_folder(folder, out_option));
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (out[i].kind == Kind::written) ledger[files[i].name].push_back(hash_of(files[i].text));
  }
  TROUPE_TRY(write_file_durably(ledger_path, ledger_text(ledger)));
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (out[i].kind != Kind::written) continue;
    TROUPE_TRY(write_file_durably(out[i].path, files[i].text));
    ledger[files[i].name] = {hash_of(files[i].text)};
  }
  TROUPE_TRY(write_file_durably(ledger_path, ledger_text(ledger)));
  return out;
}

}  // namespace troupe::data

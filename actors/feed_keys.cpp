#include "actors/feed_keys.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::actors {

namespace {

std::string server_file(const std::string& runtime_dir) { return runtime_dir + "/feed-server.json"; }
std::string client_file(const std::string& runtime_dir) { return runtime_dir + "/feed-client.json"; }

Result<std::optional<nlohmann::json>> read_json(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<nlohmann::json>{};
  TROUPE_ASSIGN(const std::string text, read_file(path));
  auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object())
    return Error{Errc::data_loss, path + ": not the JSON that troupe wrote; start the run again"};
  return std::optional<nlohmann::json>{std::move(parsed)};
}

}  // namespace

Result<void> write_feed_server(const std::string& runtime_dir, const CurveServer& keys) {
  const nlohmann::json json = {{"secret", keys.secret_key}, {"allowed", keys.allowed_clients}};
  return write_file_durably(server_file(runtime_dir), json.dump(), 0600);
}

Result<std::optional<CurveServer>> read_feed_server(const std::string& runtime_dir) {
  TROUPE_ASSIGN(const auto json, read_json(server_file(runtime_dir)));
  if (!json) return std::optional<CurveServer>{};
  return std::optional<CurveServer>{
      {.secret_key = json->value("secret", ""), .allowed_clients = json->value("allowed", std::vector<std::string>{})}};
}

Result<void> write_feed_client(const std::string& runtime_dir, const CurveClient& keys) {
  const nlohmann::json json = {{"public", keys.public_key}, {"secret", keys.secret_key}};
  return write_file_durably(client_file(runtime_dir), json.dump(), 0600);
}

Result<std::optional<CurveClient>> read_feed_client(const std::string& runtime_dir) {
  TROUPE_ASSIGN(const auto json, read_json(client_file(runtime_dir)));
  if (!json) return std::optional<CurveClient>{};
  return std::optional<CurveClient>{
      {.server_key = "", .public_key = json->value("public", ""), .secret_key = json->value("secret", "")}};
}

}  // namespace troupe::actors

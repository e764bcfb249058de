#include "actors/feed_keys.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/log.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::actors {

namespace {

constexpr std::chrono::seconds kPeriod{5};

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

/// Every 5 s, on the loop's thread: the file is a few kilobytes in the runtime directory. Ends with the list's last
/// socket.
void read_clients_again(IoLoop& loop, const std::string& runtime_dir, const std::weak_ptr<ClientKeys>& clients) {
  loop.after(kPeriod, [&loop, runtime_dir, clients] {
    const auto live = clients.lock();
    if (!live) return;
    const auto server = read_feed_server(runtime_dir);
    if (server && *server) {
      live->replace({(*server)->allowed_clients.begin(), (*server)->allowed_clients.end()});
    } else if (!server) {
      log::warn("the feeds' keys cannot be read again: {}", server.error().message());
    }
    read_clients_again(loop, runtime_dir, clients);
  });
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

Result<std::optional<CurveServer>> open_feed_server(IoLoop& loop, const std::string& runtime_dir) {
  TROUPE_ASSIGN(auto server, read_feed_server(runtime_dir));
  if (!server) return server;
  auto clients = std::make_shared<ClientKeys>(
      std::set<std::string>(server->allowed_clients.begin(), server->allowed_clients.end()));
  server->live_clients = clients;
  read_clients_again(loop, runtime_dir, clients);
  return server;
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

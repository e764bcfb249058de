#include "actors/feed_keys.h"

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

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

struct FeedServer {
  std::string secret_key;
  ClientKeys::Ranges clients;
};

/// Absent file: no value.
Result<std::optional<FeedServer>> read_feed_server(const std::string& runtime_dir) {
  TROUPE_ASSIGN(const auto json, read_json(server_file(runtime_dir)));
  if (!json) return std::optional<FeedServer>{};
  FeedServer server{.secret_key = json->value("secret", ""), .clients = {}};
  for (const auto& [key, range] : json->value("allowed", std::map<std::string, std::string>{})) {
    auto& from = server.clients[key];
    if (range.empty()) continue;
    TROUPE_ASSIGN(from, AddressRange::parse(range));
  }
  return std::optional<FeedServer>{std::move(server)};
}

/// Every 5 s, on the loop's thread: the file is a few kilobytes in the runtime directory. Ends with the list's last
/// socket.
void read_clients_again(IoLoop& loop, const std::string& runtime_dir, const std::weak_ptr<ClientKeys>& clients) {
  loop.after(kPeriod, [&loop, runtime_dir, clients] {
    const auto live = clients.lock();
    if (!live) return;
    const auto server = read_feed_server(runtime_dir);
    if (server && *server) {
      live->replace((*server)->clients);
    } else if (!server) {
      log::warn("the feeds' keys cannot be read again: {}", server.error().message());
    }
    read_clients_again(loop, runtime_dir, clients);
  });
}

}  // namespace

Result<void> write_feed_server(const std::string& runtime_dir, const std::string& secret_key,
                               const ClientKeys::Ranges& clients) {
  auto allowed = nlohmann::json::object();
  for (const auto& [key, range] : clients) allowed[key] = range ? range->to_string() : "";
  const nlohmann::json json = {{"secret", secret_key}, {"allowed", allowed}};
  return write_file_durably(server_file(runtime_dir), json.dump(), 0600);
}

Result<std::optional<CurveServer>> open_feed_server(IoLoop& loop, const std::string& runtime_dir) {
  TROUPE_ASSIGN(const auto server, read_feed_server(runtime_dir));
  if (!server) return std::optional<CurveServer>{};
  const auto clients = std::make_shared<ClientKeys>(server->clients);
  read_clients_again(loop, runtime_dir, clients);
  return std::optional<CurveServer>{{.secret_key = server->secret_key, .allowed_clients = {}, .live_clients = clients}};
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

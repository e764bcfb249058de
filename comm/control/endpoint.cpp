#include "comm/control/endpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/file_io.h"

namespace troupe::comm {

namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";
constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;

bool is_port(std::string_view port) {
  if (port == "*") return true;
  if (port.empty() || port.size() > 5 ||
      !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  return std::atoi(std::string(port).c_str()) <= 65'535;
}

Result<Endpoint> parse_ipc(const std::string& text) {
  Endpoint endpoint{.kind = Endpoint::Kind::ipc, .host = {}, .port = {}, .path = text.substr(kIpc.size())};
  if (endpoint.path.empty() || endpoint.path.front() != '/') {
    return Error{Errc::invalid_argument,
                 fmt::format("endpoint {} needs an absolute path, such as ipc:///run/troupe/ctl", text)};
  }
  if (endpoint.path.size() > kMaxPath) {
    return Error{Errc::invalid_argument,
                 fmt::format("endpoint {} has a path of {} bytes; the kernel takes {}. Choose a shorter run directory",
                             text, endpoint.path.size(), kMaxPath)};
  }
  return endpoint;
}

}  // namespace

Result<Endpoint> parse_endpoint(const std::string& text) {
  if (text.starts_with(kIpc)) return parse_ipc(text);
  const std::size_t colon = text.rfind(':');
  if (!text.starts_with(kTcp) || colon <= kTcp.size()) {
    return Error{Errc::invalid_argument,
                 fmt::format("endpoint \"{}\" is neither tcp://host:port nor ipc:///path", text)};
  }
  Endpoint endpoint{.kind = Endpoint::Kind::tcp,
                    .host = text.substr(kTcp.size(), colon - kTcp.size()),
                    .port = text.substr(colon + 1)};
  if (!is_port(endpoint.port)) {
    return Error{Errc::invalid_argument,
                 fmt::format("endpoint \"{}\" has the port \"{}\"; wanted 0 to 65535 or *", text, endpoint.port)};
  }
  return endpoint;
}

bool is_loopback(const Endpoint& endpoint) noexcept {
  const std::string_view host = endpoint.host;
  if (host == "localhost" || host == "[::1]" || host == "::1") return true;
  // a name like 127.example.org must not pass: digits and dots only
  return host.starts_with("127.") &&
         std::all_of(host.begin(), host.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

bool is_wildcard(const Endpoint& endpoint) noexcept {
  return endpoint.kind == Endpoint::Kind::tcp &&
         (endpoint.host == "*" || endpoint.host == "0.0.0.0" || endpoint.host == "[::]" || endpoint.host == "::");
}

std::string with_host(const std::string& endpoint, const std::string& host) {
  return host.empty() ? endpoint : "tcp://" + host + endpoint.substr(endpoint.rfind(':'));
}

Result<void> prepare_ipc_folder(const Endpoint& endpoint) {
  const std::filesystem::path folder = std::filesystem::path(endpoint.path).parent_path();
  if (folder.has_parent_path()) TROUPE_TRY(make_folders(folder.parent_path().string()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return file_error(folder.string(), "the socket folder cannot be created", errno);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Error{Errc::failed_precondition, fmt::format("the socket folder {} is not a directory", folder.string())};
  }
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return Error{
        Errc::failed_precondition,
        fmt::format("the socket folder {} has mode {:04o} and owner {}; others could connect. Run: chmod 700 {}",
                    folder.string(), info.st_mode & 07777, info.st_uid, folder.string())};
  }
  return {};
}

}  // namespace troupe::comm

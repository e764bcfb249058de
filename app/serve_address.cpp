#include "app/serve_address.h"

#include <fmt/format.h>

#include <charconv>

#include "comm/control/endpoint.h"
#include "comm/serve/token.h"

namespace troupe::app {

std::string ServeAddress::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<ServeAddress> serve_address(const std::string& protocol, const std::string& bind,
                                   const std::string& token_file) {
  const std::string wanted = !bind.empty() ? bind : protocol == "groot" ? "127.0.0.1:5555" : "127.0.0.1:8000";
  const auto endpoint = parse_endpoint("tcp://" + wanted);
  if (!endpoint)
    return Error{Errc::invalid_argument,
                 fmt::format("--bind {}: want host:port, such as 127.0.0.1:8000 or [::]:8000", wanted)};
  ServeAddress address{.host = endpoint->host, .port = 0, .token = {}};
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  if (endpoint->port != "*")
    std::from_chars(endpoint->port.data(), endpoint->port.data() + endpoint->port.size(), address.port);
  if (!token_file.empty()) {
    TROUPE_ASSIGN(address.token, read_bearer_token(token_file));
  } else if (!is_loopback(*endpoint)) {
    return Error{Errc::failed_precondition,
                 fmt::format("--bind {} can be reached from other machines, which wants a "
                             "token: write one to a file (umask 077; head -c 32 /dev/urandom "
                             "| base64 > serve.token), give --token-file serve.token here and the "
                             "token to the clients; or keep to loopback and use ssh -L",
                             wanted)};
  }
  return address;
}

}  // namespace troupe::app

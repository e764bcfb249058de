#include "comm/control/curve_keys.h"

#include <fmt/format.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/durable_file.h"
#include "comm/control/guarded_file.h"

namespace troupe::comm {

namespace {

constexpr std::string_view kHeader = "troupe-token v1";
constexpr std::size_t kMaxFile = 4096;
constexpr std::size_t kKeyChars = 40;

Result<Token> parse_token(std::string_view text, const std::string& path) {
  Token token;
  std::map<std::string_view, std::string*> wanted{{"endpoint: ", &token.endpoint},
                                                  {"server: ", &token.server_key},
                                                  {"public: ", &token.public_key},
                                                  {"secret: ", &token.secret_key}};
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (number == 1) {
      if (line != kHeader)
        return Error{Errc::invalid_argument, fmt::format("{}:1: the first line must be \"{}\"", path, kHeader)};
      continue;
    }
    bool known = false;
    for (auto it = wanted.begin(); it != wanted.end() && !known; ++it) {
      if (!line.starts_with(it->first)) continue;
      *it->second = line.substr(it->first.size());
      wanted.erase(it);
      known = true;
      break;
    }
    // the line itself may be a secret with a typing error: never print it
    if (!known) return Error{Errc::invalid_argument, fmt::format("{}:{}: unknown or repeated line", path, number)};
  }
  if (!wanted.empty())
    return Error{Errc::invalid_argument, fmt::format("{}: the line \"{}\" is missing", path, wanted.begin()->first)};
  for (const std::string* key : {&token.server_key, &token.public_key, &token.secret_key}) {
    if (!is_curve_key(*key))
      return Error{Errc::invalid_argument, fmt::format("{}: a key is not {} characters of Z85", path, kKeyChars)};
  }
  TROUPE_ASSIGN(const std::string derived, public_key_of(token.secret_key));
  if (derived != token.public_key)
    return Error{Errc::invalid_argument, fmt::format("{}: the secret key does not belong to the public key", path)};
  return token;
}

}  // namespace

bool is_curve_key(const std::string& text) {
  std::array<std::uint8_t, 32> raw{};
  // libzmq reads up to a null byte
  const bool is_whole = text.size() == kKeyChars && text.find('\0') == std::string::npos;
  return is_whole && zmq_z85_decode(raw.data(), text.c_str()) != nullptr;
}

Result<CurveKeyPair> generate_keypair() {
  std::array<char, kKeyChars + 1> public_key{}, secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    return Error{Errc::failed_precondition,
                 fmt::format("cannot make CURVE keys: {}; libzmq needs libsodium", zmq_strerror(zmq_errno()))};
  }
  return CurveKeyPair{public_key.data(), secret_key.data()};
}

Result<std::string> public_key_of(const std::string& secret_key) {
  std::array<char, kKeyChars + 1> public_key{};
  if (!is_curve_key(secret_key) || zmq_curve_public(public_key.data(), secret_key.c_str()) != 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("a CURVE secret key has {} characters of Z85; this one has {} characters", kKeyChars,
                             secret_key.size())};
  }
  return std::string(public_key.data());
}

Result<void> write_token_file(const std::string& path, const Token& token) {
  for (const std::string* field : {&token.endpoint, &token.server_key, &token.public_key, &token.secret_key}) {
    if (field->empty() || field->find('\n') != std::string::npos) {
      return Error{Errc::invalid_argument, fmt::format("token file {}: every field needs one line of text", path)};
    }
  }
  const std::string text = fmt::format("{}\nendpoint: {}\nserver: {}\npublic: {}\nsecret: {}\n", kHeader,
                                       token.endpoint, token.server_key, token.public_key, token.secret_key);
  return write_file_durably(path, text, 0600);
}

Result<Token> read_token_file(const std::string& path) {
  TROUPE_ASSIGN(const std::string text, read_guarded_file(path, "token file", Guard::secret, kMaxFile));
  return parse_token(text, path);
}

}  // namespace troupe::comm

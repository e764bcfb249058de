#include "comm/serve/token.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/control/guarded_file.h"

namespace troupe::comm {

namespace {

constexpr std::size_t kMaxTokenFile = 4096;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

bool constant_time_equal(std::string_view expected, std::string_view given) noexcept {
  // volatile: the loop must not learn to stop early
  volatile unsigned char difference = expected.size() == given.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = expected.empty() ? '\0' : expected[i % expected.size()];
    difference = static_cast<unsigned char>(difference |
                                            (static_cast<unsigned char>(other) ^ static_cast<unsigned char>(given[i])));
  }
  return difference == 0;
}

std::string_view token_of_authorization(std::string_view value) noexcept {
  value = trimmed(value);
  const std::size_t blank = value.find(' ');
  if (blank == std::string_view::npos) return {};
  const std::string_view scheme = value.substr(0, blank);
  if (!equals_ignoring_case(scheme, "bearer") && !equals_ignoring_case(scheme, "api-key")) return {};
  return trimmed(value.substr(blank));
}

Result<std::string> read_bearer_token(const std::string& path) {
  TROUPE_ASSIGN(const std::string text, read_guarded_file(path, "token file", Guard::secret, kMaxTokenFile));
  const std::string token(trimmed(std::string_view(text).substr(0, text.find('\n'))));
  if (token.size() < kMinTokenBytes)
    return Error{
        Errc::invalid_argument,
        fmt::format("the token in {} has {} characters; at least {} are wanted (head -c 32 /dev/urandom | base64 > {})",
                    path, token.size(), kMinTokenBytes, path)};
  if (!std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; }))
    return Error{Errc::invalid_argument,
                 fmt::format("the token in {} holds other characters than printable ASCII", path)};
  return token;
}

}  // namespace troupe::comm

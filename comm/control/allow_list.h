#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"
#include "comm/control/address_range.h"

namespace troupe::comm {

/// What the holder of a key may do (docs/security.md#rights).
enum class KeyRole : std::uint8_t { node, op, viewer };
constexpr auto enum_names(KeyRole) { return std::array{"node", "operator", "viewer"}; }

/// One key that may connect.
struct AllowedKey {
  /// Public half, Z85.
  std::string key;
  KeyRole role = KeyRole::viewer;
  /// Whom it belongs to. "*": a node under any name that no other line has, as with a job's token.
  std::string name;
  /// Last moment that it counts, as RFC 3339 in UTC ("2026-12-31T00:00:00Z"); empty: no end.
  std::string not_after = {};
  /// Where it may come from; nothing: any address.
  std::optional<AddressRange> from = {};
};

/// The keys that may connect to a controller, as of one reading of its file (docs/wire.md#allow-list).
class AllowList {
 public:
  /// `path` is for messages. Errors: invalid_argument (names the line: words missing, a key that is no Z85, an unknown
  /// role, a name that is none, an option that is unknown or said twice, a time or a range of addresses that is none, a
  /// key twice, "*" of another role; more than 1 MiB or 10,000 keys).
  static Result<AllowList> parse(const std::string& text, const std::string& path);
  /// Reads a file that nobody else may write. Errors: those of parse and of read_guarded_file.
  static Result<AllowList> read(const std::string& path);

  void add(AllowedKey key) { keys_.push_back(std::move(key)); }
  /// `now` as RFC 3339 in UTC (base/utc_text.h).
  void drop_expired(const std::string& now);
  const std::vector<AllowedKey>& keys() const { return keys_; }
  /// Null: not listed. Valid while the list lives.
  const AllowedKey* find(const std::string& key) const;
  /// Whether a line other than "*" has this name.
  bool names(const std::string& name) const;

 private:
  std::vector<AllowedKey> keys_;
};

}  // namespace troupe::comm

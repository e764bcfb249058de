#pragma once

#include <string>

#include "base/result.h"
#include "comm/control/curve_keys.h"

namespace troupe::comm {

/// What NAME.key and NAME.pub say (docs/wire.md#key-files).
struct KeyFile {
  /// "node", "operator", "viewer" or "controller": what it was made for. The controller's allow-list decides.
  std::string role;
  /// kNamePattern.
  std::string name;
  /// RFC 3339, UTC.
  std::string created;
  CurveKeyPair keys;
};

/// The line of an allow-list that lets this key in.
std::string allow_line(const KeyFile& key);

/// Makes a pair and writes FOLDER/NAME.key (mode 0600) and FOLDER/NAME.pub (0644), both synced. Never overwrites.
/// Errors: invalid_argument (name), failed_precondition (one of them is there already); those of generate_keypair and
/// file_error.
Result<KeyFile> make_key_files(const std::string& folder, const std::string& role, const std::string& name,
                               const std::string& created);
/// FOLDER/NAME.pub of a pair whose secret half is there. Errors: failed_precondition (it is there already), those of
/// file_error.
Result<void> write_public_key_file(const std::string& folder, const KeyFile& key);

/// Reads NAME.key. Errors: those of read_guarded_file for a secret; invalid_argument (damaged: names the line, never
/// prints it; the secret does not belong to the public half).
Result<KeyFile> read_key_file(const std::string& path);
/// Reads NAME.pub, which has no secret.
Result<KeyFile> read_public_key_file(const std::string& path);

}  // namespace troupe::comm

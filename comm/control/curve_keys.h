#pragma once

#include <string>

#include "base/result.h"

namespace troupe::comm {

/// A CURVE key pair, each half 40 characters of Z85.
struct CurveKeyPair {
  /// May be told to anybody; the secret key never leaves its process but in a token file.
  std::string public_key;
  std::string secret_key;
};

/// Whether a text is a key: 40 characters of Z85.
bool is_curve_key(const std::string& text);
/// A fresh pair. Errors: failed_precondition (libzmq was built without CURVE).
Result<CurveKeyPair> generate_keypair();
/// The public half of a secret key. Errors: invalid_argument.
Result<std::string> public_key_of(const std::string& secret_key);

/// What a node needs to join a job over the network. The file that holds it is a secret: a process that can read it may
/// join.
struct Token {
  /// "tcp://host:port" of the controller.
  std::string endpoint;
  /// Controller's public key.
  std::string server_key;
  /// Client's pair.
  std::string public_key;
  std::string secret_key;
};

/// Writes the token file (docs/wire.md) with mode 0600: a new file, synced, then renamed over `path`.
/// Errors: invalid_argument (a field is empty or has a line break), those of file_error.
Result<void> write_token_file(const std::string& path, const Token& token);

/// Reads a token file. Errors: not_found, failed_precondition (another owner, or others can read it; names the chmod),
/// invalid_argument (damaged; names the line).
Result<Token> read_token_file(const std::string& path);

}  // namespace troupe::comm

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "configs/model_config.h"

namespace troupe {

/// A prompt as the text encoder takes it: both vectors have the tokenizer's max_length.
struct TokenizedText {
  std::vector<std::int64_t> ids;   ///< pieces, one end token, padding
  std::vector<std::int64_t> mask;  ///< 1 on pieces and the end token, which come first
};

/// Prompts to token ids. Immutable after construction; any thread may call it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Cleans the prompt (clean_ascii_prompt), splits it, keeps at most max_length - 1 pieces, appends the end token,
  /// pads.
  TokenizedText tokenize(std::string_view prompt) const;

  std::int64_t max_length() const { return max_length_; }
  virtual std::int64_t vocab() const = 0;

 protected:
  explicit Tokenizer(std::int64_t max_length) : max_length_(max_length) {}
  /// Pieces of a cleaned prompt, without end token or padding.
  virtual std::vector<std::int64_t> pieces(const std::string& cleaned) const = 0;
  virtual std::int64_t pad_id() const = 0;
  virtual std::int64_t end_id() const = 0;

 private:
  std::int64_t max_length_;
};

/// Collapses runs of ASCII white space to one space and strips both ends. Leaves every other byte as it is: entities
/// and Unicode are not repaired.
std::string clean_ascii_prompt(std::string_view prompt);

/// What becomes of characters outside a SentencePiece vocabulary when the model has byte pieces
/// (dreamzero-model.md 4.2).
enum class UnknownBytes : std::uint8_t {
  to_unknown,  ///< one unknown token, runs fused: what the published fast tokenizer does without byte fallback
  keep,        ///< byte pieces
};

/// The tokenizer that `config.tokenizer` names: a SentencePiece model file, or with an empty name UTF-8 bytes (byte +
/// 3; pad 0, end 1, unknown 2). In a SentencePiece tokenizer the literal special tokens of the model in a prompt become
/// their ids. Errors: not_found for a file that cannot be read, invalid_argument for a vocabulary larger than
/// config.vocab.
Result<std::unique_ptr<Tokenizer>> make_tokenizer(const TextEncoderConfig& config,
                                                  UnknownBytes unknown = UnknownBytes::to_unknown);

}  // namespace troupe

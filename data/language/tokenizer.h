#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "configs/model_config.h"

namespace troupe::data {

/// A prompt as the text encoder takes it: both vectors have the tokenizer's max_length.
struct TokenizedText {
  std::vector<std::int64_t> ids;   ///< pieces, one end token, padding
  std::vector<std::int64_t> mask;  ///< 1 on pieces and the end token, which come first
};

/// Prompts to token ids. Immutable after construction; any thread may call it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of a prompt that clean_prompt (unicode.h) has cleaned: split, cut to max_length - 1 pieces, the end token
  /// appended, padded. Does not clean: that happens once, on the whole prompt.
  TokenizedText tokenize(std::string_view cleaned) const;

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

/// Cleans a whole prompt and tokenises it. Errors: those of clean_prompt.
Result<TokenizedText> clean_and_tokenize(const Tokenizer& tokenizer, std::string_view prompt);

/// What becomes of characters outside a SentencePiece vocabulary when the model has byte pieces: `model.byte_fallback`
/// of Hugging Face's tokenizer.json.
enum class UnknownBytes : std::uint8_t {
  to_unknown,  ///< one unknown token, runs fused: what the fast tokenizer does without byte fallback
  keep,        ///< byte pieces
};

/// The tokenizer that `config.tokenizer` names: a SentencePiece model file, a folder that holds spiece.model, or with
/// an empty name UTF-8 bytes (byte + 3; pad 0, end 1, unknown 2). The model's map of characters is applied cluster by
/// cluster (data/language/character_map.h). A tokenizer.json beside the model says whether unknown characters become
/// byte pieces (model.byte_fallback) and which literal tokens in a prompt become their ids (added_tokens); without one
/// they become the unknown token, and the literals are the model's padding, end and unknown pieces. `unknown` overrides
/// the file. Errors: not_found for a file that cannot be read, invalid_argument for a tokenizer.json of another form
/// and for a vocabulary larger than config.vocab.
Result<std::unique_ptr<Tokenizer>> make_tokenizer(const TextEncoderConfig& config,
                                                  std::optional<UnknownBytes> unknown = std::nullopt);

}  // namespace troupe::data

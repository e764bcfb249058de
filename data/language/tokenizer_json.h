#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// A literal token that a fast tokenizer looks for before it splits the text into pieces.
struct AddedToken {
  std::string content;
  std::int64_t id = 0;
  bool strip_left = false;   ///< white space before it belongs to it
  bool strip_right = false;  ///< white space behind it belongs to it
};

/// What Hugging Face's tokenizer.json decides beside a SentencePiece model.
struct TokenizerJson {
  bool byte_fallback = false;  ///< model.byte_fallback: characters outside the vocabulary become byte pieces
  std::vector<AddedToken> added;
};

/// Reads those fields of a tokenizer.json as a stream (its vocabulary has a quarter of a million rows, which are
/// skipped). Errors: not_found, invalid_argument (not JSON, with the byte where it stopped; a model other than Unigram;
/// an added token without an id).
Result<TokenizerJson> read_tokenizer_json(const std::string& path);

}  // namespace troupe::data

#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "data/language/tokenizer.h"
#include "data/language/tokenizer_json.h"

namespace troupe::data {

/// A tokenizer from a SentencePiece model file, with the model's map of characters applied as CharacterMap says.
/// `added` are the literal tokens looked for before splitting; when empty, the model's padding, end and unknown pieces.
/// Use make_tokenizer, which finds the files and checks the vocabulary. Errors: not_found (no readable model),
/// invalid_argument (a model without padding or end token).
Result<std::unique_ptr<Tokenizer>> load_sentencepiece_tokenizer(const std::string& path, std::int64_t max_length,
                                                                UnknownBytes unknown, std::vector<AddedToken> added);

}  // namespace troupe::data

#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/text/tokenizer.h"

namespace troupe {

/// A tokenizer from a SentencePiece model file; use make_tokenizer, which also checks the vocabulary.
Result<std::unique_ptr<Tokenizer>> load_sentencepiece_tokenizer(const std::string& path, std::int64_t max_length,
                                                                UnknownBytes unknown);

}  // namespace troupe

#pragma once

#include <string>

#include "base/result.h"

namespace troupe::data {

/// A SentencePiece model file, taken apart so that its map of characters is applied here and not by SentencePiece.
struct SentencePieceModel {
  /// The map's bytes, as CharacterMap::read takes them; empty for a model without one.
  std::string character_map;
  /// The model (Protocol Buffers) without the map: SentencePiece treats white space and splits, and leaves characters
  /// as they are. Also without the model's self-test, whose samples count on the map.
  std::string without_map;
};

/// Reads and takes apart a model file. Errors: those of MappedFile::open; data_loss (no Protocol Buffers message).
Result<SentencePieceModel> read_sentencepiece_model(const std::string& path);

}  // namespace troupe::data

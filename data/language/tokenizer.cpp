#include "data/language/tokenizer.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/hugging_face.h"
#include "data/language/sentencepiece_tokenizer.h"
#include "data/language/unicode.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kPad = 0, kEnd = 1, kFirstByte = 3;  // 2 is unknown, which bytes never are

class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(std::int64_t max_length) : Tokenizer(max_length) {}
  std::int64_t vocab() const override { return kFirstByte + 256; }

 protected:
  std::vector<std::int64_t> pieces(const std::string& cleaned) const override {
    std::vector<std::int64_t> ids;
    for (const char c : cleaned) ids.push_back(kFirstByte + static_cast<unsigned char>(c));
    return ids;
  }
  std::int64_t pad_id() const override { return kPad; }
  std::int64_t end_id() const override { return kEnd; }
};

/// The SentencePiece model that the configuration names, with what a tokenizer.json beside it says.
Result<std::unique_ptr<Tokenizer>> load_from_files(const TextEncoderConfig& config,
                                                   std::optional<UnknownBytes> unknown) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // what cannot be seen is reported by the reader of the file
  TROUPE_ASSIGN(fs::path model, find_model_files(config.tokenizer));
  if (fs::is_directory(model, ignored)) model /= "spiece.model";
  TokenizerJson json;
  const fs::path beside = model.parent_path() / "tokenizer.json";
  if (fs::exists(beside, ignored)) {
    TROUPE_ASSIGN(json, read_tokenizer_json(beside.string()));
  }
  const auto from_file = json.byte_fallback ? UnknownBytes::keep : UnknownBytes::to_unknown;
  return load_sentencepiece_tokenizer(model.string(), config.max_length, unknown.value_or(from_file),
                                      std::move(json.added));
}

}  // namespace

TokenizedText Tokenizer::tokenize(std::string_view cleaned) const {
  TokenizedText out;
  out.ids = pieces(std::string(cleaned));
  const auto length = static_cast<std::size_t>(max_length_);
  if (out.ids.size() > length - 1) out.ids.resize(length - 1);
  out.ids.push_back(end_id());
  out.mask.assign(out.ids.size(), 1);
  out.ids.resize(length, pad_id());
  out.mask.resize(length, 0);
  return out;
}

Result<TokenizedText> clean_and_tokenize(const Tokenizer& tokenizer, std::string_view prompt) {
  TROUPE_ASSIGN(const std::string cleaned, clean_prompt(prompt));
  return tokenizer.tokenize(cleaned);
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(const TextEncoderConfig& config,
                                                  std::optional<UnknownBytes> unknown) {
  if (config.max_length < 2) {
    return invalid_argument(fmt::format("model.text_encoder.max_length is {}, want at least 2", config.max_length));
  }
  std::unique_ptr<Tokenizer> tokenizer;
  if (config.tokenizer.empty()) {
    tokenizer = std::make_unique<ByteTokenizer>(config.max_length);
  } else {
    TROUPE_ASSIGN(tokenizer, load_from_files(config, unknown));
  }
  if (tokenizer->vocab() > config.vocab) {
    return invalid_argument(fmt::format("model.text_encoder.vocab is {}; the tokenizer {} has {} ids", config.vocab,
                                        config.tokenizer.empty() ? "of bytes" : config.tokenizer, tokenizer->vocab()));
  }
  return tokenizer;
}

}  // namespace troupe::data

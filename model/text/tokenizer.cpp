#include "model/text/tokenizer.h"

#include <fmt/format.h>

#include "model/text/sentencepiece_tokenizer.h"

namespace troupe {
namespace {

constexpr std::int64_t kPad = 0, kEnd = 1, kFirstByte = 3;  // 2 is unknown, which bytes never are

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

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

}  // namespace

TokenizedText Tokenizer::tokenize(std::string_view prompt) const {
  TokenizedText out;
  out.ids = pieces(clean_ascii_prompt(prompt));
  const auto length = static_cast<std::size_t>(max_length_);
  if (out.ids.size() > length - 1) out.ids.resize(length - 1);
  out.ids.push_back(end_id());
  out.mask.assign(out.ids.size(), 1);
  out.ids.resize(length, pad_id());
  out.mask.resize(length, 0);
  return out;
}

std::string clean_ascii_prompt(std::string_view prompt) {
  std::string out;
  for (const char c : prompt) {
    if (!is_space(c)) {
      out.push_back(c);
    } else if (!out.empty() && out.back() != ' ') {
      out.push_back(' ');
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(const TextEncoderConfig& config, UnknownBytes unknown) {
  if (config.max_length < 2) {
    return Error{Errc::invalid_argument,
                 fmt::format("model.text_encoder.max_length is {}, want at least 2", config.max_length)};
  }
  std::unique_ptr<Tokenizer> tokenizer;
  if (config.tokenizer.empty()) {
    tokenizer = std::make_unique<ByteTokenizer>(config.max_length);
  } else {
    TROUPE_ASSIGN(tokenizer, load_sentencepiece_tokenizer(config.tokenizer, config.max_length, unknown));
  }
  if (tokenizer->vocab() > config.vocab) {
    return Error{Errc::invalid_argument,
                 fmt::format("model.text_encoder.vocab is {}; the tokenizer {} has {} ids", config.vocab,
                             config.tokenizer.empty() ? "of bytes" : config.tokenizer, tokenizer->vocab())};
  }
  return tokenizer;
}

}  // namespace troupe

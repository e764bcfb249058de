#include "data/sample/tokenize.h"

#include <algorithm>
#include <memory>

#include "data/language/tokenizer.h"

namespace troupe::data {

Result<Tokenize> make_tokenize(const TextEncoderConfig& config) {
  TROUPE_ASSIGN(auto made, make_tokenizer(config));
  const std::shared_ptr<const Tokenizer> tokenizer = std::move(made);
  return Tokenize([tokenizer](const std::string& prompt, std::span<std::int64_t> ids,
                              std::span<std::int64_t> mask) -> Result<void> {
    const TokenizedText text = tokenizer->tokenize(prompt);
    std::copy(text.ids.begin(), text.ids.end(), ids.begin());
    std::copy(text.mask.begin(), text.mask.end(), mask.begin());
    return {};
  });
}

}  // namespace troupe::data

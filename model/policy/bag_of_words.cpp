#include "model/policy/bag_of_words.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"

namespace troupe::model {

namespace {

bool is_of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) > 0x7F;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// In order, lower-cased.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool goes_on = false;
  for (const char c : text.substr(0, text.find('\0'))) {
    if (is_of_word(c)) {
      if (!goes_on) words.emplace_back();
      words.back() += lower(c);
    }
    goes_on = is_of_word(c);
  }
  return words;
}

/// What a batch of texts says, each different one once.
struct Rows {
  /// i64 [U,M] rows of the table, and f32 [U,M] 1 over their number; 0 behind them.
  at::Tensor rows, share;
  /// i64 [N]: which of the U texts each is.
  at::Tensor which;
};

Rows look_up(const at::Tensor& texts, std::int64_t vocab) {
  const auto bytes = static_cast<std::size_t>(texts.size(1));
  const auto* const all = reinterpret_cast<const char*>(texts.const_data_ptr<std::uint8_t>());
  Rows out{{}, {}, at::empty({texts.size(0)}, at::kLong)};
  std::unordered_map<std::string_view, std::int64_t> numbers;
  std::vector<std::vector<std::int64_t>> different;
  std::size_t most = 1;
  for (std::int64_t n = 0; n < texts.size(0); ++n) {
    const std::string_view text(all + static_cast<std::size_t>(n) * bytes, bytes);
    const auto [at, is_new] = numbers.try_emplace(text, static_cast<std::int64_t>(different.size()));
    if (is_new) {
      different.push_back(word_rows(text, vocab));
      most = std::max(most, different.back().size());
    }
    out.which.mutable_data_ptr<std::int64_t>()[n] = at->second;
  }
  const auto count = static_cast<std::int64_t>(different.size()), width = static_cast<std::int64_t>(most);
  out.rows = at::zeros({count, width}, at::kLong);
  out.share = at::zeros({count, width}, at::kFloat);
  for (std::int64_t u = 0; u < count; ++u) {
    const auto& rows = different[static_cast<std::size_t>(u)];
    std::copy(rows.begin(), rows.end(), out.rows.mutable_data_ptr<std::int64_t>() + u * width);
    std::fill_n(out.share.mutable_data_ptr<float>() + u * width, rows.size(), 1.0F / static_cast<float>(rows.size()));
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> word_rows(std::string_view text, std::int64_t vocab) {
  const std::vector<std::string> words = words_of(text);
  const auto row_of = [vocab](std::string_view word) {
    return static_cast<std::int64_t>(xxh3_64(word) % static_cast<std::uint64_t>(vocab));
  };
  std::vector<std::int64_t> rows;
  for (const std::string& word : words) rows.push_back(row_of(word));
  for (std::size_t i = 1; i < words.size(); ++i) rows.push_back(row_of(words[i - 1] + " " + words[i]));
  return rows;
}

at::Tensor BagOfWords::forward(const ParamView& view, const at::Tensor& texts) const {
  TORCH_CHECK(texts.dim() == 2 && texts.scalar_type() == at::kByte, "texts are ", texts.toString(), texts.sizes(),
              "; wanted u8 [N,bytes]");
  const at::Tensor& table = view[weight_];
  const Rows said = look_up(texts.cpu().contiguous(), vocab_);
  const auto words = at::embedding(table, said.rows.to(table.device()));
  const auto bags = (words * said.share.to(table.options()).unsqueeze(2)).sum(1);
  // index_select would do, but its gradient on CUDA adds up in any order
  return at::embedding(bags, said.which.to(table.device()));
}

}  // namespace troupe::model

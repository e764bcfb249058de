#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/shard/network.h"

namespace troupe::model {

/// The rows of a table of `vocab` rows that a text's words are assigned to: words w_1 .. w_m in order, then each two of
/// them side by side, w_i and w_(i+1) with a blank between.
///     row(w) = XXH3-64(w) mod vocab
///
/// A word is a run of letters and digits of ASCII, which are lower-cased, and of bytes above ASCII, which stay as they
/// are: every character above ASCII, such as a Chinese one, belongs to a word, punctuation too. Everything else stands
/// between words. The text ends at its first zero.
std::vector<std::int64_t> word_rows(std::string_view text, std::int64_t vocab);

/// From a text to a vector: the mean of a learned table's rows over what word_rows() says of the text, 0 without a
/// word. Pairs of words tell "red on blue" from "blue on red", which words alone do not. Words that share a row by
/// chance are one word to it.
///     y[n] = mean_j E[r_j],  r = word_rows(text[n], vocab)
///
/// E begins as N(0, 1), as torch.nn.Embedding does. Immutable, thread-safe.
/// Source: arXiv:1607.01759 section 2 (fastText, its bag of n-grams with n = 2).
class BagOfWords {
 public:
  /// E, [vocab,width], is called "<prefix>.words".
  BagOfWords(const std::string& prefix, std::int64_t vocab, std::int64_t width)
      : weight_(prefix + ".words"), vocab_(vocab), width_(width) {}

  std::vector<ParamSpec> params() const { return {{weight_, {vocab_, width_}, {Init::Kind::normal, 1.0}}}; }
  std::int64_t width() const noexcept { return width_; }
  /// Texts u8 [N,bytes], zeros behind each, to [N,width] in the dtype of E. Each different text is looked up once, on
  /// the CPU. The sums of gradients have one order.
  /// Errors: throws c10::Error on another dtype or shape.
  at::Tensor forward(const ParamView& view, const at::Tensor& texts) const;

 private:
  std::string weight_;
  std::int64_t vocab_, width_;
};

}  // namespace troupe::model

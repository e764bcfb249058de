#include "model/wan/text_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace troupe::model {
namespace {

/// For each sample the first one with the same features.
std::vector<std::int64_t> first_equal(const at::Tensor& context) {
  std::vector<std::int64_t> first;
  for (std::int64_t b = 0; b < context.size(0); ++b) {
    std::int64_t same = 0;
    while (same < b && !(first[static_cast<std::size_t>(same)] == same && at::equal(context[same], context[b]))) ++same;
    first.push_back(same);
  }
  return first;
}

/// Rows up to the last that is not zero.
std::int64_t real_rows(const at::Tensor& features_LC) {
  const auto used = features_LC.ne(0).any(1).nonzero();
  return used.numel() == 0 ? 0 : used.max().item<std::int64_t>() + 1;
}

std::int64_t rounded_up(std::int64_t rows) { return (rows + kTextRowStep - 1) / kTextRowStep * kTextRowStep; }

}  // namespace

TextRows distinct_text_rows(const at::Tensor& context_BLC, bool collapse_pads) {
  TORCH_CHECK(context_BLC.dim() == 3 && context_BLC.size(1) > 0, "context ", context_BLC.sizes(),
              ", want [B, L, text width]");
  const auto samples = context_BLC.size(0), length = context_BLC.size(1);
  const auto of_sample = at::empty({samples, 3}, at::TensorOptions().dtype(at::kLong));
  auto ranges = of_sample.accessor<std::int64_t, 2>();
  const auto set = [&](std::int64_t sample, std::int64_t begin, std::int64_t end, std::int64_t repeats) {
    ranges[sample][0] = begin, ranges[sample][1] = end, ranges[sample][2] = repeats;
  };
  const auto as_they_lie = [&] { return context_BLC.reshape({1, samples * length, -1}); };
  if (!context_BLC.is_cpu()) {
    for (std::int64_t b = 0; b < samples; ++b) set(b, b * length, (b + 1) * length, 1);
    return {as_they_lie(), of_sample};
  }

  const auto first = first_equal(context_BLC);
  std::vector<at::Tensor> prompts;
  std::int64_t rows = 0;
  for (std::int64_t b = 0; b < samples; ++b) {
    if (const auto same = first[static_cast<std::size_t>(b)]; same != b) {
      set(b, ranges[same][0], ranges[same][1], ranges[same][2]);
      continue;
    }
    const auto features = context_BLC[b];
    const auto kept = collapse_pads ? std::min(real_rows(features) + 1, length) : length;
    set(b, rows, rows + kept, 1 + length - kept);
    prompts.push_back(features.narrow(0, 0, kept));
    rows += kept;
  }
  if (rows == samples * length) return {as_they_lie(), of_sample};
  const auto unseen = collapse_pads ? std::min(rounded_up(rows), samples * length) - rows : 0;
  if (unseen > 0) prompts.push_back(at::zeros({unseen, context_BLC.size(2)}, context_BLC.options()));
  return {at::cat(prompts, 0).unsqueeze(0), of_sample};
}

}  // namespace troupe::model

#include "model/wan/lora_merge.h"

namespace troupe::model {

void add_low_rank(const LowRankUpdate& update, std::int64_t begin, std::span<float> values) {
  const auto rank = update.rank, in = update.in;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t element = begin + static_cast<std::int64_t>(i), row = element / in, column = element % in;
    double sum = 0;
    for (std::int64_t k = 0; k < rank; ++k) {
      sum += static_cast<double>(update.b[static_cast<std::size_t>(row * rank + k)]) *
             static_cast<double>(update.a[static_cast<std::size_t>(k * in + column)]);
    }
    values[i] = static_cast<float>(static_cast<double>(values[i]) + update.scale * sum);
  }
}

}  // namespace troupe::model

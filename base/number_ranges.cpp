#include "base/number_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace troupe::base {

Result<std::vector<NumberRange>> parse_number_ranges(const std::string& text, const std::string& flag,
                                                     const std::string& noun) {
  std::vector<NumberRange> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    long long first = 0, last = 0;
    int used = 0;
    if (std::sscanf(item.c_str(), "%lld..%lld%n", &first, &last, &used) != 2) {
      used = 0;
      if (std::sscanf(item.c_str(), "%lld%n", &first, &used) == 1) last = first;
    }
    if (item.empty() || used != static_cast<int>(item.size()) || first < 0 || last < first) {
      return Error{
          Errc::invalid_argument,
          fmt::format("{} {}: '{}' is no {}; wanted numbers and ranges such as 3,8..11", flag, text, item, noun)};
    }
    out.push_back({first, last});
    begin = end + 1;
  }
  return out;
}

}  // namespace troupe::base

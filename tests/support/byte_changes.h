#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

using FuzzRandom = std::mt19937_64;

/// A number below `limit`; 0 when that is 0.
inline std::size_t below(FuzzRandom& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

/// One change as fuzzers make them: a flipped bit, another byte, bytes inserted, erased or repeated, or a word of the
/// format's dictionary inserted or written over.
inline void change_bytes(FuzzRandom& random, std::string& bytes, const std::vector<std::string>& dictionary) {
  const std::size_t at = below(random, bytes.size() + 1);
  switch (below(random, 7)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
      return;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random());
      return;
    case 2:
      bytes.insert(at, 1 + below(random, 4), static_cast<char>(random()));
      return;
    case 3:
      bytes.erase(at, 1 + below(random, 16));
      return;
    case 4:
      bytes.insert(at, bytes.substr(below(random, bytes.size() + 1), below(random, 64)));
      return;
    case 5:
      bytes.insert(at, dictionary[below(random, dictionary.size())]);
      return;
    default: {
      const std::string& word = dictionary[below(random, dictionary.size())];
      bytes.replace(at, word.size(), word);
    }
  }
}

/// A piece of `bytes` replaced by a piece of `other`.
inline void splice_bytes(FuzzRandom& random, std::string& bytes, const std::string& other) {
  const std::size_t at = below(random, bytes.size() + 1);
  bytes.replace(at, below(random, 32), other.substr(below(random, other.size() + 1), below(random, 64)));
}

}  // namespace troupe::testing

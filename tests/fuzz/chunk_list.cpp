// The digests by chunk beside a rank file. The first line of an input is the size of the file, which holds zeros.
#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "model/io/chunk_digests.h"
#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  const std::size_t line = std::min(text.find('\n'), text.size());
  std::size_t bytes = 0;
  std::from_chars(text.data(), text.data() + line, bytes);
  static const std::vector<std::byte> kZeros(static_cast<std::size_t>(4 * kDigestChunk));
  const auto file = std::span(kZeros).first(std::min(bytes, kZeros.size()));
  const std::string list(text.substr(std::min(line + 1, text.size())));
  const auto chunks = CheckedChunks::open("file", file, list);
  if (!chunks) return refused(chunks.error()), 0;
  const auto checked = chunks->check_all();
  ChunkDigests written;
  written.update(file);
  TROUPE_CHECK(checked.has_value() == (written.list() == list), "the list of these bytes, and no other, is good");
  return 0;
}

}  // namespace troupe::testing

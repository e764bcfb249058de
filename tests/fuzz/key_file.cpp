// A file with keys: NAME.key, NAME.pub or a token file. The reader of each gets the input.
#include "comm/control/key_file.h"

#include <fcntl.h>

#include "base/file_io.h"
#include "comm/control/allow_list.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/scratch_folder.h"

namespace troupe::testing {

namespace {

/// A file that passes for a secret, with the input as content.
const std::string& file_of(std::string_view content) {
  static const ScratchFolder folder;
  static const std::string path = folder / "input";
  const auto file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  TROUPE_CHECK(file && write_all(file->get(), std::as_bytes(std::span(content)), path), "the input is written");
  return path;
}

void check_line(const KeyFile& key) {
  const auto list = AllowList::parse(allow_line(key), "allow");
  TROUPE_CHECK(list || !enum_value<KeyRole>(key.role), "a key's line is one of an allow-list");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string& path = file_of(text_of(data, size));
  const auto secret = read_key_file(path);
  if (secret) check_line(*secret);
  const auto open = read_public_key_file(path);
  if (open) check_line(*open);
  TROUPE_CHECK(!secret || !open, "a secret is not taken for a public file");
  const auto token = read_token_file(path);
  if (!secret && !open && !token) refused(secret.error());
  return 0;
}

}  // namespace troupe::testing

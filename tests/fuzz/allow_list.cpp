// A controller's list of keys.
#include "comm/control/allow_list.h"

#include <fmt/format.h>

#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto list = AllowList::parse(std::string(text_of(data, size)), "allow");
  if (!list) return refused(list.error()), 0;
  std::string text;
  for (const AllowedKey& key : list->keys()) {
    TROUPE_CHECK(list->find(key.key) == &key, "a key has one line");
    text += fmt::format("{} {} {}{}{}\n", key.key, enum_name(key.role), key.name,
                        key.not_after.empty() ? "" : " not_after=" + key.not_after,
                        key.from ? " cidr=" + key.from->to_string() : "");
  }
  const auto back = AllowList::parse(text, "allow");
  TROUPE_CHECK(back && back->keys().size() == list->keys().size(), "what was read can be read again");
  for (std::size_t i = 0; i < back->keys().size(); ++i) {
    const AllowedKey &one = list->keys()[i], &other = back->keys()[i];
    TROUPE_CHECK(one.key == other.key && one.role == other.role && one.name == other.name &&
                     one.not_after == other.not_after && one.from == other.from,
                 "the list is read again as it was");
  }
  return 0;
}

}  // namespace troupe::testing

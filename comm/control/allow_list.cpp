#include "comm/control/allow_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "base/ids.h"
#include "base/utc_text.h"
#include "comm/control/curve_keys.h"
#include "comm/control/guarded_file.h"

namespace troupe::comm {

namespace {
constexpr std::size_t kMaxListBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxKeys = 10'000;
constexpr const char* kListName = "allow-list";
constexpr std::string_view kNotAfter = "not_after=", kFrom = "cidr=";

/// One word behind a key's name.
Result<void> read_option(const std::string& word, AllowedKey& key) {
  const auto wrong = [&](const std::string& why) {
    return Error{Errc::invalid_argument, fmt::format("'{}': {}", word, why)};
  };
  if (word.starts_with(kNotAfter)) {
    if (!key.not_after.empty()) return wrong("the line has a not_after= before it; keep one");
    key.not_after = word.substr(kNotAfter.size());
    if (!is_utc_text(key.not_after)) return wrong("wanted not_after=YYYY-MM-DDTHH:MM:SSZ");
    return {};
  }
  if (!word.starts_with(kFrom)) return wrong("wanted not_after=TIME, cidr=ADDRESS/BITS or nothing behind the name");
  if (key.from) return wrong("the line has a cidr= before it; keep one");
  const auto range = AddressRange::parse(word.substr(kFrom.size()));
  if (!range) return range.error().with("cidr");
  key.from = *range;
  return {};
}
}  // namespace

Result<AllowList> AllowList::parse(const std::string& text, const std::string& path) {
  AllowList list;
  std::set<std::string> seen;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto wrong = [&](const std::string& why) {
      return Error{Errc::invalid_argument, fmt::format("{}:{}: {}", path, number, why)};
    };
    std::istringstream words(line);
    std::string key, role, name;
    // '#' is a letter of Z85: only a line that begins with "# " or is "#" is a comment
    if (!(words >> key) || key == "#") continue;
    if (!(words >> role >> name))
      return wrong("wanted `KEY ROLE NAME [not_after=TIME] [cidr=ADDRESS/BITS]`: a public key, a role, a name");
    if (!is_curve_key(key)) return wrong("the public key is not 40 characters of Z85");
    const auto known = enum_value<KeyRole>(role);
    if (!known) return wrong(fmt::format("role '{}': wanted node, operator or viewer", role));
    if (name == "*" ? *known != KeyRole::node : !base::is_name(name))
      return wrong(fmt::format("name '{}': wanted {}, or * for a node", name, kNamePattern));
    AllowedKey read{.key = key, .role = *known, .name = name};
    for (std::string word; words >> word;) {
      if (const auto option = read_option(word, read); !option) return wrong(option.error().message());
    }
    if (!seen.insert(key).second) return wrong("this key is listed twice");
    if (list.keys_.size() >= kMaxKeys) return wrong(fmt::format("more than {} keys", kMaxKeys));
    list.keys_.push_back(std::move(read));
  }
  return list;
}

Result<AllowList> AllowList::read(const std::string& path) {
  TROUPE_ASSIGN(const std::string text, read_guarded_file(path, kListName, Guard::list, kMaxListBytes));
  return parse(text, path);
}

void AllowList::drop_expired(const std::string& now) {
  std::erase_if(keys_, [&](const AllowedKey& key) { return !key.not_after.empty() && key.not_after < now; });
}

const AllowedKey* AllowList::find(const std::string& key) const {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const AllowedKey& k) { return k.key == key; });
  return found == keys_.end() ? nullptr : &*found;
}

bool AllowList::names(const std::string& name) const {
  return std::any_of(keys_.begin(), keys_.end(), [&](const AllowedKey& k) { return k.name == name; });
}

}  // namespace troupe::comm

#include "actors/feed_dial.h"

#include "actors/feed_keys.h"

namespace troupe::actors {

namespace {

constexpr std::uint32_t kCredits = 2;  // one in work, one waiting: the feeder never idles between items
constexpr std::chrono::milliseconds kDialDeadline{
    2'000};  // one attempt: a feeder dials again while the address is valid

}  // namespace

Result<DecoderRole::Dial> feed_dial(const RoleContext& context) {
  TROUPE_ASSIGN(const auto keys, read_feed_client(context.runtime_dir));
  return DecoderRole::Dial([loop = context.loop, keys](const std::string& address, const std::string& producer) {
    const bool remote = address.starts_with("zmq:");
    return open_producer(loop, address, producer, kCredits, kDialDeadline, remote ? keys : std::nullopt);
  });
}

}  // namespace troupe::actors

#include "actors/consumer_dial.h"

#include "actors/feed_keys.h"

namespace troupe::actors {

namespace {

// One attempt: ProducerLoop dials again while the address is valid.
constexpr std::chrono::milliseconds kDialDeadline{2'000};

}  // namespace

Result<ConsumerDial> consumer_dial(const RoleContext& context, std::int64_t credits) {
  TROUPE_ASSIGN(const auto keys, read_feed_client(context.runtime_dir));
  return ConsumerDial([loop = context.loop, keys, credits](const std::string& address, const std::string& producer) {
    return open_producer(loop, address, producer, static_cast<std::uint32_t>(credits), kDialDeadline,
                         address.starts_with("zmq:") ? keys : std::nullopt);
  });
}

}  // namespace troupe::actors

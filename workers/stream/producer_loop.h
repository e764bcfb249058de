#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"

namespace troupe::workers {

/// How an actor that makes items reaches one that takes them. `address` is one of Peers::channels
/// (docs/channels.md#addresses), `producer` the instance name of the maker, such as "decoder/0#1". One attempt with a
/// deadline of its own; any thread.
using ConsumerDial =
    std::function<Result<std::unique_ptr<ChannelProducer>>(const std::string& address, const std::string& producer)>;

/// One consumer as its producer sees it: a thread that dials the consumer and has its credits served one after the
/// other, or Options::threads of them at a time, until the loop is stopped or the consumer is gone; the log says which.
/// A consumer that does not answer is dialled again: it may only be slow, or stopped, and nobody but the controller
/// says that it is gone. The connection lasts until the loop is destroyed, or longer where `serve` has kept it.
class ProducerLoop {
 public:
  struct Options {
    /// Instance name of the maker, to the consumer and in the log.
    std::string producer;
    /// What the log calls the consumer: "a feed".
    std::string consumer;
    /// Of the consumer.
    std::string address;
    /// That take credits, each its own; all end with the first one that does.
    std::int64_t threads = 1;
  };
  /// What the loop calls, on its threads.
  struct Work {
    /// Makes the item of a credit and sends it, or sees to it that another thread does. An error ends the loop.
    std::function<Result<void>(const std::shared_ptr<ChannelProducer>& producer, const Credit& credit)> serve;
    /// Waits until there is something to make; false ends the loop. Who stops the loop wakes this wait first. Empty:
    /// there always is.
    std::function<bool()> ready = {};
    /// Once, after the last credit; not if the consumer never answered. May be empty.
    std::function<void()> left = {};
  };

  ProducerLoop(Options options, ConsumerDial dial, Work work);
  /// As stop(). What `work` uses must outlive the loop.
  ~ProducerLoop() { stop(); }
  ProducerLoop(const ProducerLoop&) = delete;
  ProducerLoop& operator=(const ProducerLoop&) = delete;

  /// Ends the loop and waits for its thread. Not on that thread.
  void stop();
  /// Of the connection: wait_seconds is the time without a credit. Zeros before the consumer has answered. Any thread.
  ChannelStats stats() const;

 private:
  void run();
  Result<std::unique_ptr<ChannelProducer>> dial() const;
  Result<void> serve_on_threads(const std::shared_ptr<ChannelProducer>& producer);
  Result<void> serve_credits(const std::shared_ptr<ChannelProducer>& producer);
  Result<Credit> next_credit(ChannelProducer& producer);

  const Options options_;
  const ConsumerDial dial_;
  const Work work_;
  /// Held in next_credit of the connection.
  std::mutex credit_mutex_;
  mutable std::mutex mutex_;
  /// Set once, under mutex_.
  std::shared_ptr<ChannelProducer> producer_;
  std::atomic<bool> stopping_{false};
  /// Last: it starts when everything else is there.
  std::thread thread_;
};

/// What a producer sends of a credit: with the `made` bytes of its slot and their XXH3-64, or VOID with the error.
Item make_item(const Credit& credit, std::span<const std::byte> slot, const Result<std::size_t>& made);

/// Closes connections whose address is not listed any more, and has `make` open those that are new.
template <class Connection, class Make>
void connect_listed(std::map<std::string, std::unique_ptr<Connection>>& connections,
                    const std::vector<std::string>& addresses, const Make& make) {
  std::erase_if(connections, [&](const auto& entry) {
    return std::find(addresses.begin(), addresses.end(), entry.first) == addresses.end();
  });
  for (const std::string& address : addresses) {
    auto& connection = connections[address];
    if (!connection) connection = make(address);
  }
}

}  // namespace troupe::workers

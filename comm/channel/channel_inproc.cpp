#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "base/trace.h"
#include "comm/channel/channel_transports.h"
#include "comm/channel/credit_queue.h"

namespace troupe::comm {
namespace {

/// The consumers of this process by name.
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  bool add(const std::string& name, const std::shared_ptr<ConsumerCore>& core) {
    const std::lock_guard lock(mutex_);
    return cores_.emplace(name, core).second;
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    cores_.erase(name);
  }
  std::shared_ptr<ConsumerCore> find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = cores_.find(name);
    return found == cores_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<ConsumerCore>> cores_;
};

/// Writes straight into the consumer's arena; keeps the memory alive when the consumer goes first.
class InprocProducer final : public ChannelProducer {
 public:
  InprocProducer(std::string name, std::shared_ptr<ConsumerCore> core, std::shared_ptr<CreditQueue> queue)
      : name_(std::move(name)), core_(std::move(core)), queue_(std::move(queue)) {}
  ~InprocProducer() override { core_->leave(name_); }
  InprocProducer(const InprocProducer&) = delete;
  InprocProducer& operator=(const InprocProducer&) = delete;

  Result<Credit> next_credit(std::chrono::milliseconds deadline) override {
    TROUPE_ASSIGN(const auto arrived, queue_->next(deadline, deadline, {}));
    return arrived.credit;
  }
  std::span<std::byte> slot(const Credit& credit) override { return core_->table().slot(credit.slot); }
  Result<void> send(const Item& item) override {
    const Span span("send");
    TROUPE_ASSIGN(const Item checked, checked_item(item, core_->table().slot_bytes()));
    TROUPE_TRY(queue_->check_open());
    queue_->count_sent(checked);
    if (!core_->receive(name_, checked, std::nullopt))
      return Error{Errc::unavailable, "the consumer is gone: it is closing"};
    return {};
  }
  void progress(const Credit& credit) override { core_->progress(name_, credit); }
  void stop() override { queue_->stop(); }
  ChannelStats stats() const override { return queue_->stats(); }

 private:
  const std::string name_;
  const std::shared_ptr<ConsumerCore> core_;
  const std::shared_ptr<CreditQueue> queue_;
};

}  // namespace

Result<Listener> listen_inproc(const ChannelOptions& options, const std::shared_ptr<ConsumerCore>& core) {
  if (!options.endpoint.empty() || options.curve) {
    return Error{Errc::invalid_argument, "inproc takes neither an endpoint nor keys"};
  }
  if (!Registry::instance().add(options.name, core)) {
    return Error{Errc::failed_precondition, fmt::format("this process already has a consumer named {}", options.name)};
  }
  Listener listener;
  listener.address.name = options.name;
  listener.stop = [name = options.name] { Registry::instance().remove(name); };
  return listener;
}

Result<std::unique_ptr<ChannelProducer>> dial_inproc(const ChannelAddress& address, const std::string& producer,
                                                     std::uint32_t capacity) {
  const auto core = Registry::instance().find(address.name);
  if (!core) return Error{Errc::not_found, fmt::format("this process has no consumer named {}", address.name)};
  const auto queue = std::make_shared<CreditQueue>();
  TROUPE_ASSIGN(const bool is_new, core->admit(producer, queue));
  if (!is_new)
    return Error{Errc::failed_precondition, fmt::format("a producer named {} has already dialled in", producer)};
  auto end = std::make_unique<InprocProducer>(producer, core, queue);
  core->announce(producer, capacity);
  return std::unique_ptr<ChannelProducer>(std::move(end));
}

}  // namespace troupe::comm

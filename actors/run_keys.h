#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "actors/peer_judges.h"
#include "base/result.h"
#include "comm/control/curve_keys.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::actors {

/// The keys of a run that others may join (docs/security.md#keys): the controller's own pair, the token's pair and the
/// allow-list, in RUN/keys. A run that goes on keeps them, so its nodes and its operators keep theirs. A thread reads
/// the list again every 5 s; a removed key is deaf from then on.
class RunKeys {
 public:
  /// How often the list is read.
  static constexpr std::chrono::seconds kPeriod{5};
  /// Something that a user should read once; from the thread that reads.
  using OnNews = std::function<void(const std::string& text)>;

  /// Makes what is missing in RUN/keys (mode 0700) and reads the list: RUN/keys/allow, which lets the token in as a
  /// node, and `allow_file` (cluster.allow; empty: none). Writes the feeds' keys into `runtime_dir`. Opens no socket.
  /// Errors: those of make_key_files, read_key_file, AllowList::read (also of a key in both lists), write_feed_server.
  static Result<std::unique_ptr<RunKeys>> open(const RunDirectory& run, const std::string& allow_file,
                                               const std::string& runtime_dir);
  ~RunKeys();
  RunKeys(const RunKeys&) = delete;
  RunKeys& operator=(const RunKeys&) = delete;

  /// Of the control socket: every listed key.
  CurveServer server() const {
    return {.secret_key = own_.secret_key, .allowed_clients = {}, .live_clients = clients_};
  }
  std::shared_ptr<const LiveAllowList> list() const { return list_; }
  /// What a node needs to join at this address.
  Token token(const std::string& endpoint) const;
  /// Reads again from now on.
  void watch(OnNews on_news);

 private:
  RunKeys(std::string folder, std::string allow_file, std::string runtime_dir)
      : folder_(std::move(folder)), allow_file_(std::move(allow_file)), runtime_dir_(std::move(runtime_dir)) {}
  Result<AllowList> read_list() const;
  /// One reading; the list stays as it is when the files are as they were, or when one is bad. True: it changed.
  /// Errors: as open.
  Result<bool> read_again();
  void run(const OnNews& on_news);

  const std::string folder_, allow_file_, runtime_dir_;
  CurveKeyPair own_, token_;
  const std::shared_ptr<LiveAllowList> list_ = std::make_shared<LiveAllowList>();
  const std::shared_ptr<ClientKeys> clients_ = std::make_shared<ClientKeys>();
  std::string counts_;  // what of the files counts now
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace troupe::actors

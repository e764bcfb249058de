#include "actors/run_keys.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "actors/feed_keys.h"
#include "base/blocked_signals.h"
#include "base/clock.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/utc_text.h"
#include "comm/control/key_file.h"

namespace troupe::actors {

namespace {

constexpr const char* kAllowHead =
    "# Who may connect to this run: PUBLIC-KEY ROLE NAME [not_after=2026-12-31T00:00:00Z] [cidr=10.1.0.0/16],\n"
    "# one a line. Roles: node, operator, viewer. Read every 5 s.\n"
    "# The next line lets in whoever has the run's token, as a node under any name; remove it to end that.\n";

/// The pair FOLDER/NAME.key, made when it is not there, and NAME.pub beside it, which a crash may have left out.
Result<CurveKeyPair> own_pair(const std::string& folder, const std::string& role, const std::string& name) {
  const std::string path = fmt::format("{}/{}", folder, name);
  std::error_code ignored;  // read_key_file says it better
  if (!std::filesystem::exists(path + ".key", ignored)) {
    TROUPE_ASSIGN(const KeyFile made, make_key_files(folder, role, name, utc_text(SystemClock().wall_seconds())));
    return made.keys;
  }
  TROUPE_ASSIGN(const KeyFile key, read_key_file(path + ".key"));
  if (!std::filesystem::exists(path + ".pub", ignored)) TROUPE_TRY(write_public_key_file(folder, key));
  return key.keys;
}

std::string joined(const AllowList& list) {
  std::string text;
  for (const AllowedKey& key : list.keys()) {
    text += fmt::format("{} {} {} {}\n", key.key, enum_name(key.role), key.name, key.from ? key.from->to_string() : "");
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<RunKeys>> RunKeys::open(const RunDirectory& run, const std::string& allow_file,
                                               const std::string& runtime_dir) {
  const std::string folder = run.path("keys");
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return file_error(folder, "cannot be made", errno);
  std::unique_ptr<RunKeys> keys(new RunKeys(folder, allow_file, runtime_dir));
  TROUPE_ASSIGN(keys->own_, own_pair(folder, "controller", "controller"));
  TROUPE_ASSIGN(keys->token_, own_pair(folder, "node", "token"));
  const std::string list = folder + "/allow";
  std::error_code ignored;  // reading it says it better
  if (!std::filesystem::exists(list, ignored)) {
    TROUPE_TRY(write_file_durably(list, fmt::format("{}{} node *\n", kAllowHead, keys->token_.public_key), 0600));
  }
  TROUPE_TRY(keys->read_again());
  return keys;
}

RunKeys::~RunKeys() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Token RunKeys::token(const std::string& endpoint) const {
  return {.endpoint = endpoint,
          .server_key = own_.public_key,
          .public_key = token_.public_key,
          .secret_key = token_.secret_key};
}

Result<AllowList> RunKeys::read_list() const {
  TROUPE_ASSIGN(AllowList list, AllowList::read(folder_ + "/allow"));
  AllowList further;
  if (!allow_file_.empty()) {
    TROUPE_ASSIGN(further, AllowList::read(allow_file_));
  }
  for (const AllowedKey& key : further.keys()) {
    if (list.find(key.key) != nullptr)
      return Error{Errc::invalid_argument,
                   fmt::format("{}: the key {} is also in {}/allow; list it once", allow_file_, key.key, folder_)};
    list.add(key);
  }
  list.drop_expired(utc_text(SystemClock().wall_seconds()));
  return list;
}

Result<bool> RunKeys::read_again() {
  TROUPE_ASSIGN(AllowList list, read_list());
  const std::string counts = joined(list);
  if (counts == counts_) return false;
  ClientKeys::Ranges all, producers;
  for (const AllowedKey& key : list.keys()) {
    all.emplace(key.key, key.from);
    if (key.role == KeyRole::node) producers.emplace(key.key, key.from);
  }
  // deaf first: what follows may fail
  clients_->replace(std::move(all));
  list_->replace(std::move(list));
  if (auto written = write_feed_server(runtime_dir_, own_.secret_key, producers); !written)
    return written.error().with("the control socket has the new list, the feeds have the one before");
  counts_ = counts;
  return true;
}

void RunKeys::watch(OnNews on_news) {
  const BlockedSignals blocked;
  thread_ = std::thread([this, on_news = std::move(on_news)] { run(on_news); });
  pthread_setname_np(thread_.native_handle(), "allow-list");
}

void RunKeys::run(const OnNews& on_news) {
  std::string said;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [&] { return stopping_; })) {
    lock.unlock();
    const auto read = read_again();
    const std::string wrong = read ? std::string() : read.error().message();
    if (!wrong.empty() && wrong != said)
      on_news(fmt::format("{}; it is read again every {} s", wrong, kPeriod.count()));
    if (read && *read) on_news(fmt::format("read again: {} keys may connect", list_->get()->keys().size()));
    said = wrong;
    lock.lock();
  }
}

}  // namespace troupe::actors

#include "comm/bridge/session_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::comm {

SessionTable::Session* SessionTable::find(std::int64_t session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

void SessionTable::begin(Session session) {
  for (auto old = sessions_.begin(); old != sessions_.end();) {
    const std::int64_t number = old->first;
    const bool replaced = old->second.hello.name == session.hello.name || old->second.peer == session.peer;
    ++old;
    if (replaced) end(number, {Errc::aborted, fmt::format("another worker came as {}", session.hello.name)});
  }
  post(session.peer, ++last_session_, {.type = "WELCOME"});
  sessions_.emplace(last_session_, std::move(session));
}

void SessionTable::end(std::int64_t session, const Error& why) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  // a worker that is alive and only late says HELLO again
  post(found->second.peer, session,
       {.type = "ERR", .body = {{"text", "this session is over: " + why.message()}, {"fatal", true}}});
  gone_.push_back({found->second.hello.name, why});
  sessions_.erase(found);
  for (auto& [number, lease] : leases_) {
    if (lease.session == session) lease.gone = Error{Errc::aborted, why.message()};
  }
  for (auto call = calls_.begin(); call != calls_.end();) {
    const std::int64_t request = call->first;
    const bool is_its = call->second->session == session;
    ++call;
    if (is_its) answer(request, session, Error{Errc::aborted, why.message()});
  }
}

std::int64_t SessionTable::lease() {
  const auto idlest = std::min_element(sessions_.begin(), sessions_.end(),
                                       [](const auto& a, const auto& b) { return a.second.leases < b.second.leases; });
  Session& session = idlest->second;
  ++session.leases;
  const bool shares = session.hello.has_shm && session.process.is_open();
  leases_[++last_lease_] = {
      .session = idlest->first, .worker = session.hello.name, .sharing_pid = shares ? session.hello.pid : 0};
  return last_lease_;
}

void SessionTable::release(std::int64_t number) {
  const auto found = leases_.find(number);
  if (Session* session = find(found->second.session); session != nullptr) {
    --session->leases;
    post(session->peer, found->second.session, {.type = "RELEASE", .body = {{"lease", number}}});
  }
  leases_.erase(found);
}

void SessionTable::ask(std::int64_t request, Call& call, std::string_view type, WireMap body) {
  post(sessions_.at(call.session).peer, call.session,
       {.type = std::string(type), .request = request, .body = std::move(body)});
  calls_[request] = &call;
}

bool SessionTable::is_behind_making(std::int64_t request) const {
  const std::int64_t session = calls_.at(request)->session;
  return std::any_of(calls_.begin(), calls_.lower_bound(request),
                     [&](const auto& one) { return one.second->session == session && one.second->makes; });
}

std::int64_t SessionTable::num_making() const {
  return std::count_if(calls_.begin(), calls_.end(), [](const auto& one) { return one.second->makes; });
}

bool SessionTable::is_asked(std::int64_t session) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](const auto& one) { return one.second->session == session; });
}

bool SessionTable::answer(std::int64_t request, std::int64_t session, Result<WireMap> answer) {
  const auto found = calls_.find(request);
  if (found == calls_.end() || found->second->session != session) return false;
  found->second->answer.emplace(std::move(answer));
  found->second->answered.notify_one();
  if (found->second->makes) {
    for (auto behind = std::next(found); behind != calls_.end(); ++behind) {
      if (behind->second->session != session) continue;
      behind->second->begun = Clock::now();
      behind->second->answered.notify_one();
    }
  }
  calls_.erase(found);
  return true;
}

void SessionTable::post(const std::string& peer, std::int64_t session, BridgeMessage message) {
  message.session = session;
  outgoing_.push_back({peer, encode_bridge_message(std::move(message)), session});
}

}  // namespace troupe::comm

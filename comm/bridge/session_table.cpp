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
    if (lease.session != session) continue;
    lease.gone = Error{Errc::aborted, why.message()};
    if (lease.direct) lease.direct->shut_down();
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

void SessionTable::connect(std::int64_t lease, DirectConnection direct) {
  Lease& held = leases_.at(lease);
  held.direct = std::make_unique<DirectConnection>(std::move(direct));
  if (held.gone) held.direct->shut_down();
}

void SessionTable::ask(std::int64_t request, Call& call, std::int64_t lease, std::string_view type, WireMap body) {
  calls_[request] = &call;
  BridgeMessage question{.type = std::string(type), .request = request, .body = std::move(body)};
  DirectConnection* direct = leases_.at(lease).direct.get();
  if (direct == nullptr) return post(sessions_.at(call.session).peer, call.session, std::move(question));
  question.session = call.session;
  // one that cannot be written ends the connection, which its reader is told
  if (!direct->send(encode_bridge_message(std::move(question)))) direct->shut_down();
}

bool SessionTable::may_wait_for_making(std::int64_t request) const {
  const std::int64_t session = calls_.at(request)->session;
  return std::any_of(calls_.begin(), calls_.end(), [&](const auto& one) {
    return one.first != request && one.second->session == session && one.second->makes;
  });
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
    for (const auto& [other, call] : calls_) {
      if (other == request || call->session != session) continue;
      call->begun = Clock::now();
      call->answered.notify_one();
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

#include "comm/front/zmtp_meter.h"

#include <algorithm>

#include "comm/front/zmtp_format.h"

namespace troupe::comm {

using namespace zmtp;

const char* ZmtpMeter::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto next = static_cast<std::uint8_t>(bytes.front());
    switch (state_) {
      case State::greeting:
        if (greeting_bytes_ == 0 && next != 0xff) return "it does not speak ZMTP 3";
        if (greeting_bytes_ == kSignature - 1 && next != 0x7f) return "it does not speak ZMTP 3";
        if (greeting_bytes_ == kMajor && next < 3) return "it speaks an older ZMTP than 3";
        if (++greeting_bytes_ == kGreeting) state_ = State::flags;
        break;
      case State::flags:
        if ((next & ~(kMore | kLong | kCommand)) != 0 || (next & (kMore | kCommand)) == (kMore | kCommand))
          return "a frame has unknown flags";
        flags_ = next;
        length_ = 0;
        length_left_ = (next & kLong) != 0 ? 8 : 1;
        state_ = State::length;
        break;
      case State::length:
        length_ = length_ << 8 | next;
        if (--length_left_ == 0) {
          if (const char* wrong = begin_frame()) return wrong;
        }
        break;
      case State::body: {
        const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), length_));
        length_ -= taken;
        bytes = bytes.subspan(taken);
        if (length_ == 0) end_frame();
        continue;
      }
    }
    bytes = bytes.subspan(1);
  }
  return nullptr;
}

const char* ZmtpMeter::begin_frame() {
  state_ = State::body;
  if ((flags_ & kCommand) != 0) {
    if (length_ > limits_.command_bytes) return "a command is too long";
    ++commands_;
    if (length_ == 0) end_frame();
    return nullptr;
  }
  if (length_ > limits_.message_bytes - message_bytes_) return "a message is too long";
  message_bytes_ += static_cast<std::size_t>(length_);
  announced_bytes_ += length_;
  if (++message_frames_ > limits_.message_frames) return "a message has too many frames";
  if (length_ == 0) end_frame();
  return nullptr;
}

void ZmtpMeter::end_frame() {
  state_ = State::flags;
  if ((flags_ & (kMore | kCommand)) != 0) return;
  ++messages_;
  message_bytes_ = message_frames_ = 0;
}

}  // namespace troupe::comm

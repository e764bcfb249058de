#include "workers/rollout/trainer_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "workers/checkpoint/reader.h"

namespace troupe::workers {

namespace {

std::string to_hex_text(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

Result<std::string> from_hex_text(const std::string& text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() % 2 != 0) return Error{Errc::data_loss, "trainer_state.json: normaliser has an odd number of digits"};
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return Error{Errc::data_loss, "trainer_state.json: normaliser is not hexadecimal"};
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

}  // namespace

std::string RlTrainerState::text() const {
  return nlohmann::ordered_json{{"normaliser", to_hex_text(encode(normaliser))},
                                {"optimizer_steps", optimizer_steps},
                                {"env_steps", env_steps},
                                {"counters", counters}}
             .dump(2) +
         "\n";
}

Result<RlTrainerState> RlTrainerState::parse(const std::string& text) {
  RlTrainerState state;
  if (text.empty()) return state;
  try {
    const auto json = nlohmann::json::parse(text);
    TROUPE_ASSIGN(const std::string bytes, from_hex_text(json.at("normaliser").get<std::string>()));
    auto normaliser = decode_normaliser(bytes);
    if (!normaliser) return Error{Errc::data_loss, "trainer_state.json: " + normaliser.error().message()};
    state.normaliser = std::move(*normaliser);
    state.optimizer_steps = json.at("optimizer_steps");
    state.env_steps = json.at("env_steps");
    state.counters = json.at("counters").get<std::map<std::string, std::int64_t>>();
    state.present = true;
  } catch (const nlohmann::json::exception& e) {
    return Error{Errc::data_loss, fmt::format("trainer_state.json: {}", e.what())};
  }
  return state;
}

Result<RlTrainerState> RlTrainerState::read(const CheckpointReader& reader) {
  TROUPE_ASSIGN(const std::string text, reader.attachment(kTrainerStateFile));
  auto state = parse(text);
  if (!state) return state.error().with("checkpoint " + reader.directory());
  return state;
}

}  // namespace troupe::workers

#include "workers/inference/serve/dreamzero_protocol.h"

#include "workers/inference/serve/request_reader.h"

namespace troupe::workers {

namespace {

class DreamzeroProtocol final : public WebSocketProtocol {
 public:
  using WebSocketProtocol::WebSocketProtocol;

  std::vector<std::byte> metadata() const override {
    std::int64_t external = 0;
    bool has_wrist = false;
    for (const std::string& view : info_.views) {
      const bool is_wrist = view.find("wrist") != std::string::npos;
      has_wrist = has_wrist || is_wrist;
      external += is_wrist ? 0 : 1;
    }
    return encode_wire_tree(WireMap{{"image_resolution", WireArray{info_.image_height, info_.image_width}},
                                    {"needs_wrist_camera", has_wrist},
                                    {"n_external_cameras", external},
                                    {"needs_stereo_camera", false},
                                    {"needs_session_id", true},
                                    {"action_space", action_space_of(info_)}},
                            ArrayForm::openpi);
  }
  std::vector<std::byte> reply(const ActionChunk& chunk, const ReplyTiming&) const override {
    return encode_wire_tree(action_reply(chunk, info_, form_), ArrayForm::openpi);
  }
};

}  // namespace

std::string action_space_of(const PolicyInfo& info) {
  for (const PolicyVector& vector : info.action) {
    std::string name = short_name(vector.name);
    for (const char* space : {"joint_position", "joint_velocity", "cartesian_position", "cartesian_velocity"}) {
      if (name == space) return name;
    }
  }
  return info.action.empty() ? std::string() : short_name(info.action.front().name);
}

std::unique_ptr<WebSocketProtocol> make_dreamzero_protocol(const PolicyInfo& info, ActionForm form) {
  return std::make_unique<DreamzeroProtocol>(info, form, ViewNames::dreamzero);
}

}  // namespace troupe::workers

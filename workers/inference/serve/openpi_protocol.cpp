#include "workers/inference/serve/openpi_protocol.h"

#include "workers/inference/serve/request_reader.h"

namespace troupe::workers {

namespace {

WireMap widths(const std::vector<PolicyVector>& vectors) {
  WireMap map;
  for (const PolicyVector& vector : vectors) map.push_back({short_name(vector.name), vector.width});
  return map;
}

class OpenpiProtocol final : public WebSocketProtocol {
 public:
  using WebSocketProtocol::WebSocketProtocol;

  std::vector<std::byte> metadata() const override {
    WireArray views;
    for (const std::string& view : info_.views) views.emplace_back(short_name(view));
    return encode_wire_tree(WireMap{{"policy", info_.name},
                                    {"embodiment", info_.embodiment},
                                    {"image_resolution", WireArray{info_.image_height, info_.image_width}},
                                    {"views", std::move(views)},
                                    {"state", widths(info_.state)},
                                    {"action", widths(info_.action)},
                                    {"action_horizon", info_.horizon},
                                    {"action_dim", info_.action_width()}},
                            ArrayForm::openpi);
  }
  std::vector<std::byte> reply(const ActionChunk& chunk, const ReplyTiming& timing) const override {
    WireValue value = action_reply(chunk, info_, form_);
    if (auto* map = std::get_if<WireMap>(&value.storage)) {
      WireMap server_timing{{"infer_ms", timing.infer_ms}};
      if (timing.prev_total_ms) server_timing.push_back({"prev_total_ms", *timing.prev_total_ms});
      map->push_back({"server_timing", std::move(server_timing)});
    }
    return encode_wire_tree(value, ArrayForm::openpi);
  }
};

}  // namespace

std::unique_ptr<WebSocketProtocol> make_openpi_protocol(const PolicyInfo& info, ActionForm form) {
  return std::make_unique<OpenpiProtocol>(info, form, ViewNames::literal);
}

}  // namespace troupe::workers

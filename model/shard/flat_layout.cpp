#include "model/shard/flat_layout.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/hash.h"

namespace troupe::model {

FlatLayout make_flat_layout(std::span<const ParamSpec> params) {
  FlatLayout layout;
  std::string text;
  for (const auto& param : params) {
    LayoutEntry entry{param.name, param.shape, 0, 1, param.follows};
    for (const auto extent : param.shape) entry.numel *= extent;
    const auto alignment = param.follows ? 1 : FlatLayout::kEntryAlignment;
    entry.offset = (layout.numel + alignment - 1) / alignment * alignment;
    layout.numel = entry.offset + entry.numel;
    text += fmt::format("{}[{}]@{};", entry.name, fmt::join(entry.shape, ","), entry.offset);
    layout.entries.push_back(std::move(entry));
  }
  layout.hash = xxh3_64(text);
  return layout;
}

std::uint64_t hash_of(std::span<const FlatLayout> layouts) {
  std::string text;
  for (const auto& layout : layouts) text += to_hex(layout.hash);
  return xxh3_64(text);
}

ParamView views_of(const FlatLayout& layout, const at::Tensor& flat, bool leaves) {
  ParamView views;
  add_views(views, layout.entries, flat, leaves);
  return views;
}

void add_views(ParamView& views, std::span<const LayoutEntry> entries, const at::Tensor& flat, bool leaves) {
  for (const auto& entry : entries) {
    auto view = flat.narrow(0, entry.offset, entry.numel).view(entry.shape).detach();
    if (leaves) view.requires_grad_(true);
    views.set(entry.name, std::move(view), entry.follows);
  }
}

std::vector<std::span<float>> gaps_of(const FlatLayout& layout, std::span<float> flat) {
  std::vector<std::span<float>> gaps;
  std::size_t covered = 0;
  const auto add = [&](std::size_t end) {
    if (covered < end) gaps.push_back(flat.subspan(covered, end - covered));
  };
  for (const auto& entry : layout.entries) {
    add(static_cast<std::size_t>(entry.offset));
    covered = static_cast<std::size_t>(entry.offset + entry.numel);
  }
  add(flat.size());
  return gaps;
}

}  // namespace troupe::model

#include "data/convert/output_stats.h"

namespace troupe::data {

OutputStats::OutputStats(const ConvertContext& context, std::vector<DatasetSource>& sources,
                         const ConvertJournal& journal)
    : context_(context), sources_(sources), journal_(journal), streams_(context.plan.cameras.size() + 1) {
  for (Stream& s : streams_) s.task_of.resize(context.plan.episodes.size());
  for (std::size_t t = 0; t < context.plan.tasks.size(); ++t) {
    const PlannedTask& task = context.plan.tasks[t];
    const int place = task.camera + 1;  // 0: data files
    Stream& stream = streams_[static_cast<std::size_t>(place)];
    for (const PlannedOutput& file : task.files) {
      for (std::size_t i = file.first; i < file.first + file.count; ++i) stream.task_of[i] = t;
    }
  }
}

Result<JsonDoc> OutputStats::of(std::size_t episode) {
  const PlannedEpisode& e = context_.plan.episodes[episode];
  TROUPE_ASSIGN(JsonDoc stats, sources_[e.source].stats(context_.source_of(e)));
  if (!stats.is_object()) stats = JsonDoc::object();
  const std::string key = std::to_string(e.index);
  for (Stream& s : streams_) {
    const std::size_t task = s.task_of[episode];
    if (s.loaded != task) {
      TROUPE_ASSIGN(s.entry, journal_.entry(task));
      s.loaded = task;
    }
    if (!s.entry.contains("stats") || !s.entry["stats"].contains(key)) continue;
    for (const auto& [feature, values] : s.entry["stats"][key].items()) {
      // a source whose statistics have no quantiles gets none for the columns computed here either
      JsonDoc computed = values;
      if (!stats.contains(feature)) computed_.insert(feature);
      const bool bare = stats.contains(feature) && !stats[feature].contains("q50");
      for (const char* q : {"q01", "q10", "q50", "q90", "q99"}) {
        if (bare) computed.erase(q);
      }
      stats[feature] = std::move(computed);
    }
  }
  return stats;
}

void OutputStats::erase_computed_quantiles(JsonDoc& sum) const {
  for (const std::string& name : computed_) {
    const LerobotFeature* feature = context_.sources[0].facts.find(name);
    if (feature == nullptr || !feature->is_numbers() || !sum.contains(name)) continue;
    for (const char* q : {"q01", "q99"}) sum[name].erase(q);
  }
}

}  // namespace troupe::data

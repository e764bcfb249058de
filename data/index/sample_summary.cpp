#include "data/index/sample_summary.h"

#include "base/byte_stream.h"

namespace troupe::data {

namespace {

void write_findings(ByteWriter& out, const std::vector<EpisodeFinding>& findings) {
  out.varint(findings.size());
  for (const EpisodeFinding& f : findings) {
    out.signed_varint(f.episode);
    out.text(f.problem.code);
    out.text(f.problem.path);
    out.text(f.problem.text);
  }
}

std::vector<EpisodeFinding> read_findings(ByteReader& in) {
  std::vector<EpisodeFinding> out(in.count(4));
  for (EpisodeFinding& f : out) {
    f.episode = in.signed_varint();
    f.problem.code = in.text();
    f.problem.path = in.text();
    f.problem.text = in.text();
  }
  return out;
}

template <class Stats, class Visit>
void each_statistic(Stats& s, const Visit& visit) {
  for (auto* values : {&s.min, &s.max, &s.mean, &s.std, &s.q01, &s.q99, &s.q10, &s.q50, &s.q90}) visit(*values);
}

void write_statistics(ByteWriter& out, const std::vector<FeatureStatistics>& keys) {
  out.varint(keys.size());
  for (const FeatureStatistics& key : keys) {
    each_statistic(key, [&](const std::vector<double>& values) {
      out.varint(values.size());
      for (const double v : values) out.number(v);
    });
  }
}

std::vector<FeatureStatistics> read_statistics(ByteReader& in) {
  std::vector<FeatureStatistics> out(in.count(9));
  for (FeatureStatistics& key : out) {
    each_statistic(key, [&](std::vector<double>& values) {
      values.resize(in.count(sizeof(double)));
      for (double& v : values) v = in.number<double>();
    });
  }
  return out;
}

}  // namespace

std::string encode_summary(const SampleSummary& s) {
  ByteWriter out;
  out.number(s.recipe);
  out.number(s.check_key);
  out.varint(static_cast<std::uint64_t>(s.num_views));
  for (const std::string& column : s.image_columns) out.text(column);
  for (const std::int64_t value : {s.anchor_stride, s.listed_episodes, s.skipped_episodes, s.short_episodes}) {
    out.varint(static_cast<std::uint64_t>(value));
  }
  out.varint(s.train_size);
  out.varint(s.eval_size);
  write_findings(out, s.problems);
  write_findings(out, s.warnings);
  write_statistics(out, s.statistics.state);
  write_statistics(out, s.statistics.action);
  out.text(s.metadata_json);
  out.text(s.fingerprint);
  return out.take();
}

Result<SampleSummary> decode_summary(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  SampleSummary s;
  s.recipe = in.number<std::uint64_t>();
  s.check_key = in.number<std::uint64_t>();
  s.image_columns.resize(in.count(1));
  s.num_views = static_cast<std::int64_t>(s.image_columns.size());
  for (std::string& column : s.image_columns) column = in.text();
  for (std::int64_t* value : {&s.anchor_stride, &s.listed_episodes, &s.skipped_episodes, &s.short_episodes}) {
    *value = static_cast<std::int64_t>(in.varint());
    if (*value < 0 || *value > (std::int64_t{1} << 48)) in.fail();
  }
  s.train_size = in.varint();
  s.eval_size = in.varint();
  s.problems = read_findings(in);
  s.warnings = read_findings(in);
  s.statistics.state = read_statistics(in);
  s.statistics.action = read_statistics(in);
  s.metadata_json = in.text();
  s.fingerprint = in.text();
  if (!in.at_end() || s.anchor_stride < 1 || s.num_views < 1)
    return Error{Errc::data_loss, "its summary cannot be read"};
  return s;
}

std::string encode_metadata(const std::vector<MetadataFile>& files) {
  ByteWriter out;
  out.varint(files.size());
  for (const MetadataFile& f : files) {
    out.text(f.name);
    out.number(f.size);
    out.text(f.digest);
  }
  return out.take();
}

Result<std::vector<MetadataFile>> decode_metadata(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  std::vector<MetadataFile> files(in.count(10));
  for (MetadataFile& f : files) {
    f.name = in.text();
    f.size = in.number<std::int64_t>();
    f.digest = in.text();
  }
  if (!in.at_end()) return Error{Errc::data_loss, "its list of metadata files cannot be read"};
  return files;
}

}  // namespace troupe::data

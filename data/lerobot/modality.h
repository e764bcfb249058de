#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "data/lerobot/lerobot_info.h"

namespace troupe::data {

/// A named slice of a vector column.
struct VectorKey {
  /// Short name, as embodiments and checkpoints use it: "left_arm".
  std::string name;
  /// Feature of info.json: "observation.state"; dimensions [start, end) of it.
  std::string column;
  std::int64_t start = 0, end = 0;
  std::size_t width() const { return static_cast<std::size_t>(end - start); }
};

/// A short name and the feature it stands for.
struct NamedColumn {
  std::string name;
  std::string column;
};

/// GEAR's meta/modality.json, or the same made from the feature table when the file is absent. The file is
///     {"state": {KEY: {"start": i, "end": j, "original_key": COLUMN}}, "action": ..., "video": {KEY: {"original_key":
///      FEATURE}}, "annotation": {KEY: {"original_key": COLUMN}}}
/// with dimensions [i, j) of the column; without original_key it is observation.state, action, observation.images.KEY
/// and annotation.KEY.
struct Modality {
  std::vector<VectorKey> state, action;
  /// In the order of the file.
  std::vector<NamedColumn> video, annotation;
};

/// Reads <root>/meta/modality.json; without it every state and action feature is one key, every camera but depth
/// maps one view, every annotation.* feature one annotation. Errors: invalid_argument (not JSON, an empty slice,
/// a slice past its column, a column that info.json lacks), data_loss.
Result<Modality> read_modality(const std::string& root, const LerobotInfo& info);

/// An action key and how it is made relative.
struct ActionKey {
  VectorKey key;
  bool relative = false;
  /// The state key of the same name, when relative.
  VectorKey reference;
};

/// Which slices make the state and the action of a sample, in order, which cameras make its canvas, and which column
/// labels rows.
struct SampleColumns {
  std::vector<VectorKey> state;
  std::vector<ActionKey> action;
  std::vector<NamedColumn> views;
  /// Integer column whose values are labels, indices of tasks; empty: no language, every label is 0.
  std::string label_column;
  /// Further columns of labels (paraphrase_keys), without label_column.
  std::vector<std::string> paraphrase_columns;

  /// Dimensions of the concatenated keys.
  std::size_t state_width() const;
  std::size_t action_width() const;
  /// Distinct vector columns read from the table.
  std::vector<std::string> vector_columns() const;
  /// Distinct columns of labels: label_column first, then paraphrase_columns.
  std::vector<std::string> label_columns() const;
};

/// What info.json calls every dimension of the action, such as a joint; an empty text where it does not.
std::vector<std::string> action_names(const SampleColumns& columns, const LerobotInfo& info);

/// "column[start:end]" as an embodiment YAML writes it; a bare "column", "column[:end]" and "column[start:]" as in
/// Python. Errors: invalid_argument.
struct ColumnSlice {
  std::string column;
  /// End -1: the column's width.
  std::int64_t start = 0, end = -1;
};
Result<ColumnSlice> parse_column_slice(std::string_view text);

/// Resolves the keys that the embodiment names. Its `cameras` and `slices` add to the modality or replace entries
/// of it. Empty state_keys or action_keys: the whole observation.state or action column; empty views: the embodiment's
/// cameras in order of name, else every view of the modality; empty language_key: the first annotation, else
/// task_index.
/// Errors: invalid_argument, naming the configuration key, what it says and what the dataset has.
Result<SampleColumns> resolve_columns(const Modality& modality, const LerobotInfo& info,
                                      const EmbodimentConfig& embodiment);

}  // namespace troupe::data

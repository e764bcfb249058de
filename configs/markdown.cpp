#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/algorithm.h"
#include "configs/describe.h"
#include "configs/dump.h"
#include "configs/schema_export.h"
#include "configs/suggest.h"

namespace troupe::configs {

namespace {

std::string type_name(const FieldSpec& field) {
  switch (field.kind) {
    case FieldKind::integer:
      return "integer";
    case FieldKind::number:
      return "number";
    case FieldKind::boolean:
      return "boolean";
    case FieldKind::string:
    case FieldKind::enumeration:
      return "string";
    case FieldKind::integer_list:
      return "list of integers";
    case FieldKind::number_list:
      return "list of numbers";
    case FieldKind::string_list:
      return "list of strings";
    case FieldKind::group:
      return "section";
    case FieldKind::struct_list:
      return "list of maps";
    case FieldKind::string_map:
      return "map of strings";
    case FieldKind::struct_map:
      return "map of maps";
  }
  return {};
}

std::string range_text(const FieldSpec& field) {
  const std::string expected = expected_text(field);
  if (!field.choices.empty()) return fmt::format("`{}`", fmt::join(field.choices, "` `"));
  for (const std::string_view type : {"integer", "number"}) {
    if (expected.starts_with(type) && expected.size() > type.size()) {
      const std::string range = expected.substr(type.size() + 1);
      return range.starts_with("in ") ? range.substr(3) : range;
    }
  }
  return "";
}

std::string escape_cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

bool has_own_table(const FieldSpec& field) { return field.element != nullptr; }

std::string heading_note(const FieldSpec& field, const std::string& path) {
  switch (field.kind) {
    case FieldKind::struct_list:
      return field.element->shorthand.empty()
                 ? fmt::format("Keys of each element of the list `{}`.", path)
                 : fmt::format(
                       "Keys of each element of the list `{}`. A bare scalar stands for `{}`, as an element or "
                       "as a list of one.",
                       path, field.element->shorthand);
    case FieldKind::struct_map:
      return field.element->shorthand.empty()
                 ? fmt::format("Keys of each entry of the map `{}`.", path)
                 : fmt::format("Keys of each entry of the map `{}`. A bare scalar stands for `{}`.", path,
                               field.element->shorthand);
    default:
      return {};
  }
}

void write_table(const StructSpec& spec, const std::string& prefix, std::string& out) {
  std::map<std::string, std::string> defaults;
  for (const LeafValue& leaf : leaf_values(spec, spec.defaults.get())) defaults[leaf.path] = leaf.text;
  bool begun = false;
  for (const FieldSpec& field : spec.fields) {
    if (field.kind == FieldKind::group) continue;
    if (!begun) out += "\n| key | type | default | unit | range or choices | meaning |\n|---|---|---|---|---|---|\n";
    begun = true;
    out += fmt::format("| `{}` | {} | `{}` | {} | {} | {} |\n", prefix + field.name, type_name(field),
                       escape_cell(defaults[field.name]), field.unit, escape_cell(range_text(field)),
                       escape_cell(field.doc));
  }
}

void write_sections(const StructSpec& spec, const std::string& prefix, int level, std::string& out) {
  for (const FieldSpec& field : spec.fields) {
    if (!has_own_table(field)) continue;
    const std::string path = prefix + field.name;
    const char* suffix = field.kind == FieldKind::struct_list  ? "[]."
                         : field.kind == FieldKind::struct_map ? ".*."
                                                               : ".";
    std::string doc = field.doc;
    if (doc[0] >= 'a' && doc[0] <= 'z') doc[0] = static_cast<char>(doc[0] - 'a' + 'A');
    out += fmt::format("\n{} {}\n\n{}.\n", std::string(static_cast<std::size_t>(level), '#'), path, doc);
    if (const std::string note = heading_note(field, path); !note.empty()) out += "\n" + note + "\n";
    write_table(*field.element, path + suffix, out);
    write_sections(*field.element, path + suffix, level < 4 ? level + 1 : level, out);
  }
}

/// What the rules, the planner and the learner read about each algorithm.
void write_algorithms(std::string& out) {
  out +=
      "\n## Algorithms\n\nProperties of each `algorithm.name`; docs/rl.md explains them. critic: none, one network of "
      "states (value) or several of states and actions (q). advantages: from that critic, from the returns of a group, "
      "or along the trace with importance weights. staleness: how old the policy that collected the experience may be: "
      "none, bounded by `rollout.staleness`, or any (it replays). demonstrations: imitated by a job of kind sft "
      "before, or replayed in its batches (`algorithm.demonstration_share`).\n\n"
      "| algorithm | critic | advantages | staleness | demonstrations |\n|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < enum_names(Algorithm{}).size(); ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    const AlgorithmTraits row = traits_of(algorithm);
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", enum_name(algorithm), enum_name(row.critic),
                       enum_name(row.advantages), enum_name(row.staleness), enum_name(row.demonstrations));
  }
}

constexpr const char* kPreface = R"(# Configuration

A job is one YAML file: a map of the sections below. Every key has a default, printed here; a file names what differs.
This page is generated: `bin/troupe config --markdown > docs/config.md`. `bin/troupe config --schema` prints the same as
a JSON Schema for editors.

- **Order**, weakest first: built-in default, `extends` chain, file, environment variable `TROUPE_SET`, command line.
  Maps merge key by key; lists and scalars replace.
- **`extends`**: a path or a list of paths (later ones win), relative to the file, else one of the files inside the
  binary, such as `presets/dreamzero_tiny.yaml`.
- **Overrides**: `a.b=c`, `--a.b=c`, `--a.b c`; `data.sets[0].weight=2` for an element (one past the end appends);
  `a.b=null` for an empty value (or to take an entry out of a map); `~a.b` for the built-in default. Values are scalars,
  or collections in `[..]` and `{..}`. `TROUPE_SET` holds overrides separated by blanks.
- **References**: `${key.path}` takes another key's value, `${env:NAME,default}` an environment variable's; `$${` is a
  literal `${`.
- **Scalars** are typed by their key: decimal integers and numbers (`1e-5`), `true`, `false`. A quoted scalar is a string.
  Anchors, aliases, tags, merge keys (`<<`), duplicate and unknown keys are errors.
- **Warnings**: `run` and `plan` doubt a job that can run and probably should not: `optimizer.lr` 0, or below 1e-4 with
  `model.init.mode: random`; `train_architecture: lora` on random weights; one dataset named twice. They go to stderr
  with their place and what to write instead; the job starts.
- Limits: 1 MiB a file, 16 levels of nesting.
- The run directory's `config.resolved.yaml` is the whole configuration; a comment behind each key says where its value
  comes from: `default`, `file:line`, `TROUPE_SET` or `command line`.
)";

}  // namespace

std::string config_markdown() {
  std::string out = kPreface;
  out += "\n## Top level\n";
  write_table(job_spec(), "", out);
  write_sections(job_spec(), "", 2, out);
  write_algorithms(out);
  out +=
      "\n## Names that are errors\n\nA file with one of these keys is refused with the name to write instead.\n\n| key "
      "| from | write |\n|---|---|---|\n";
  for (const Tombstone& t : tombstones()) out += fmt::format("| `{}` | {} | `{}` |\n", t.old_path, t.since, t.new_path);
  out +=
      "\n## Words of other trainers\n\nAn unknown key of this name, wherever it stands, is answered with ours.\n\n| "
      "word | key | difference |\n|---|---|---|\n";
  for (const Synonym& s : synonyms()) out += fmt::format("| `{}` | `{}` | {} |\n", s.word, s.path, s.note);
  return out;
}

}  // namespace troupe::configs

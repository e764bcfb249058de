#include "data/lerobot/defects.h"

#include <algorithm>
#include <array>

namespace troupe::data {

namespace {

constexpr std::array kDefects = {
    Defect{"D01", "metadata missing, of an unknown version, or wrong", "fail",
           "mend the metadata file that is named, or give the folder that has meta/info.json"},
    Defect{"D02", "metadata name what is not there, or disagree with it: counts, cameras, columns, files, sizes",
           "warn; what exists is used",
           "mend the metadata file that is named, or delete the file that belongs to nothing"},
    Defect{"D03", "Parquet file missing or unreadable", "drop its episodes (data.bad_sample: skip) or fail",
           "fetch or record the file again; a file without a footer was never closed"},
    Defect{"D04", "rows, columns or values of a table are wrong", "drop the episode (data.bad_sample: skip) or fail",
           "mend the column that is named, or leave the episode out (data.sets[].episodes, discarded_episode_indices)"},
    Defect{"D05", "timestamps do not step by 1/fps", "warn; rows are matched with frames by number",
           "nothing, unless rows were lost: then record or cut the episode again"},
    Defect{"D06", "video or image missing, empty, truncated or of a kind or size that is not read",
           "drop the episode (data.bad_sample: skip) or fail",
           "fetch or encode the file again (troupe convert dataset --video_mode reencode); one without moov was never "
           "closed"},
    Defect{"D07", "video and table differ in length", "use the shorter up to one row; else drop the episode or fail",
           "encode the video again from the frames of the table, or cut the table"},
    Defect{"D08", "container rate differs from info.json", "warn; rows are matched with frames by number",
           "write the true rate into meta/info.json, or encode the video at that rate"},
    Defect{"D09", "views differ in size, rate or codec", "warn; fail where a sample needs equal sizes",
           "encode the views alike: troupe convert dataset --scale WxH --codec h264"},
    Defect{"D10", "variable frame rate, edit list with gaps or negative times", "warn; presentation order is used",
           "encode the video again at a constant rate: troupe convert dataset --gop 8"},
    Defect{"D11", "label without a text, or a text that says nothing", "unknown label: drop or fail; empty text: warn",
           "add the task to the tasks file, or give it a text"},
    Defect{"D12", "statistics missing, not finite or constant", "compute them; warn of constant dimensions",
           "troupe stats --write-metadata; leave dimensions that never move out of the keys"},
    Defect{"D13", "frames that cannot be decoded, are black or do not move", "decode error: drop or fail; else warn",
           "fetch or encode the file again; leave episodes of a covered or dead camera out"},
    Defect{"D14", "episode too short for one full window", "left out of sampling and counted",
           "record longer episodes, or lower data.window.chunks or macro_stride"},
    Defect{"D15", "v3: times of an episode in its video drift or overlap",
           "warn; lengths before it are added up instead", "nothing; troupe convert dataset writes exact times"},
    Defect{"D16", "a file is not the one that was indexed", "its entry of the index is rebuilt",
           "nothing, if the file was replaced on purpose"},
    Defect{"H01", "episodes with equal states and actions", "note", "delete the copies: they count twice in training"},
    Defect{"H02", "states that stay equal for most of an episode", "note",
           "cut idle rows (meta/step_filter.jsonl takes them out of sampling)"},
    Defect{"H03", "values far outside the q01 to q99 range", "note", "look at the episode: sensors and units slip"},
    Defect{"H04", "jumps from one row to the next", "note",
           "look at the episode: angles that wrap, rows that were lost"},
};

}  // namespace

std::span<const Defect> defects() { return kDefects; }

std::string cause_of(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    if (digit && (out.empty() || out.back() != '#')) out += '#';
  }
  return out;
}

const Defect* find_defect(std::string_view code) {
  const auto it = std::find_if(kDefects.begin(), kDefects.end(), [&](const Defect& d) { return d.code == code; });
  return it == kDefects.end() ? nullptr : &*it;
}

}  // namespace troupe::data

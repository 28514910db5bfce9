#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "checkpoint/identity/equalized_from.h"
#include "commands/commands.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "scales/read/stores/open_store.h"
#include "scales/scale_diff.h"
#include "show/output.h"
#include "show/scales/scales_text.h"

namespace fp8kv {
namespace {

std::vector<std::string> cells_of(const DiffRow& row, bool per_head) {
  std::vector<std::string> cells = {cat(row.layer)};
  if (per_head) cells.push_back(cat(row.head));
  for (const ScalePair* pair : {&row.k, &row.v}) {
    cells.push_back(cat(pair->a));
    cells.push_back(cat(pair->b));
    cells.push_back(pair->a == pair->b ? "=" : significant(pair->ratio(), 6));
  }
  return cells;
}

// Adds the largest scale of each side, or "none" for a side without scales.
void add_draft(Table& table, const DraftDiff& draft, bool per_head) {
  std::vector<std::string> cells = {plain(draft.layer)};
  if (per_head) cells.push_back("");
  for (std::vector<float> LayerScales::*part : {&LayerScales::k, &LayerScales::v}) {
    const float a = largest(draft.a.*part), b = largest(draft.b.*part);
    cells.push_back(a > 0 ? cat(a) : "none");
    cells.push_back(b > 0 ? cat(b) : "none");
    cells.push_back(a == b ? "=" : a > 0 && b > 0 ? significant(ScalePair{a, b}.ratio(), 6) : "");
  }
  table.add(std::move(cells));
}

size_t differing_drafts(const ScaleDiff& diff) {
  return static_cast<size_t>(std::count_if(diff.drafts.begin(), diff.drafts.end(),
                                           [](const DraftDiff& each) { return each.differs; }));
}

std::string diff_table(const ScaleDiff& diff) {
  std::vector<std::string> header = {"layer"};
  if (diff.per_head) header.push_back("head");
  for (const char* column : {"K of A", "K of B", "B/A", "V of A", "V of B", "B/A"}) {
    header.push_back(column);
  }
  const size_t columns = header.size();
  Table table(header, {false});
  auto row = diff.rows.begin();
  for (size_t layer = 0; layer < diff.layers + diff.without_cache.size(); ++layer) {
    if (row == diff.rows.end() || row->layer != layer) {
      std::vector<std::string> cells(columns);
      cells[0] = cat(layer);
      cells[diff.per_head ? 2 : 1] = "no cache";
      table.add(std::move(cells));
    }
    for (; row != diff.rows.end() && row->layer == layer; ++row) {
      table.add(cells_of(*row, diff.per_head));
    }
  }
  for (const DraftDiff& draft : diff.drafts) add_draft(table, draft, diff.per_head);
  return table.text();
}

// "1 of 1 draft layer differs"; "" without any.
std::string drafts_summary(const ScaleDiff& diff) {
  if (diff.drafts.empty()) return "";
  const size_t differing = differing_drafts(diff);
  return cat(differing == 0 ? "no" : cat(differing), " of ",
             count_of(diff.drafts.size(), "draft layer"), differing > 1 ? " differ" : " differs",
             "\n");
}

bool q_differs(const ScaleDiff& diff) {
  return diff.q && diff.q->differing > 0;
}

// "Q: 1 of 2 layers differs; farthest is layer 1: B/A is 1.02"; "" without scales of Q.
std::string q_summary(const ScaleDiff& diff) {
  if (!diff.q) return "";
  if (!q_differs(diff)) return cat("Q: no layer of ", diff.q->layers, " differs\n");
  return cat("Q: ", diff.q->differing, " of ", count_of(diff.q->layers, "layer"),
             diff.q->differing > 1 ? " differ" : " differs", "; farthest is layer ",
             diff.q->farthest_layer, ": B/A is ", significant(diff.q->farthest.ratio(), 6), "\n");
}

std::string place_of(const ScaleDiff& diff) {
  const DiffRow& row = diff.farthest;
  return cat("layer ", row.layer, diff.per_head ? cat(", head ", row.head) : "");
}

// "3 layers", "2 layers with a KV cache".
std::string all_layers(const ScaleDiff& diff) {
  return count_of(diff.layers, "layer") + (diff.without_cache.empty() ? "" : " with a KV cache");
}

std::string summary(const ScaleDiff& diff, double tolerance) {
  const std::string beyond = tolerance > 0 ? cat(" by more than ", tolerance) : "";
  if (diff.differing_layers == 0 && diff.last_place_layers > 0) {
    return cat("the same but for the last place in ", diff.last_place_layers, " of ",
               all_layers(diff));
  }
  if (diff.differing_layers == 0) {
    return cat("no layer of ", diff.layers, diff.without_cache.empty() ? "" : " with a KV cache",
               " differs", beyond);
  }
  const DiffRow& row = diff.farthest;
  return cat(diff.differing_layers, " of ", all_layers(diff), " differ", beyond, "; farthest is ",
             place_of(diff), ": B/A is ", significant(row.k.ratio(), 6), " in K and ",
             significant(row.v.ratio(), 6), " in V");
}

std::string diff_text(const ScaleDiff& diff, double tolerance) {
  std::string text = diff_table(diff) + "\n" + summary(diff, tolerance) + "\n" +
                     drafts_summary(diff) + q_summary(diff);
  for (const DiffFinding& finding : diff.findings) {
    text += cat(finding.name, ": ", finding.sentence, "; ", finding.remedy, "\n");
  }
  return text;
}

void pair_json(JsonWriter& json, const char* name, const ScalePair& pair) {
  json.key(name).begin_object().member("a", pair.a).member("b", pair.b);
  json.member("ratio", pair.ratio()).end_object();
}

void begin_json(JsonWriter& json, const DiffOptions& options, bool same) {
  json.begin_object().member("schema", "fp8kv.diff/1");
  json.member("a", utf8_name(options.a.string())).member("b", utf8_name(options.b.string()));
  json.member("tolerance", options.tolerance).member("same", same);
}

// The JSON for scales that cannot be compared row by row, because the numbers of layers or heads
// differ.
std::string apart_json(const DiffOptions& options, const Error& reason) {
  JsonWriter json;
  begin_json(json, options, false);
  json.member("comparable", false).member("reason", reason.what());
  return json.end_object().text();
}

void drafts_json(JsonWriter& json, const std::vector<DraftDiff>& drafts) {
  if (drafts.empty()) return;
  json.key("draft_layers").begin_array();
  for (const DraftDiff& draft : drafts) {
    json.begin_object().member("layer", draft.layer).member("differs", draft.differs);
    json.member("k_of_a", std::span<const float>(draft.a.k));
    json.member("k_of_b", std::span<const float>(draft.b.k));
    json.member("v_of_a", std::span<const float>(draft.a.v));
    json.member("v_of_b", std::span<const float>(draft.b.v)).end_object();
  }
  json.end_array();
}

std::string diff_json(const DiffOptions& options, const ScaleDiff& diff, const FoundScales& a,
                      const FoundScales& b) {
  JsonWriter json;
  begin_json(json, options,
             diff.differing_layers == 0 && differing_drafts(diff) == 0 && !q_differs(diff));
  json.member("comparable", true);
  json.member("layers", uint64_t{diff.layers});
  json.member("differing_layers", uint64_t{diff.differing_layers});
  json.member("last_place_layers", uint64_t{diff.last_place_layers});
  const std::vector<int64_t> without(diff.without_cache.begin(), diff.without_cache.end());
  json.member("layers_without_cache", std::span<const int64_t>(without));
  json.member("granularity", diff.per_head ? "head" : "tensor").key("findings").begin_array();
  for (const DiffFinding& finding : diff.findings) {
    json.begin_object().member("id", finding.name).member("sentence", finding.sentence);
    json.member("remedy", finding.remedy).end_object();
  }
  json.end_array().member("notes", std::span<const std::string>(diff.notes));
  drafts_json(json, diff.drafts);
  if (diff.q) {
    json.key("q").begin_object().member("layers", uint64_t{diff.q->layers});
    json.member("differing_layers", uint64_t{diff.q->differing});
    json.member("farthest_layer", uint64_t{diff.q->farthest_layer});
    pair_json(json, "farthest", diff.q->farthest);
    json.end_object();
  }
  for (const auto& [name, side] : {std::pair("of_a", &a), std::pair("of_b", &b)}) {
    json.key(name).begin_object().member("form", side->dialect);
    diagnoses_json(json, side->diagnoses);
    json.end_object();
  }
  json.key("rows").begin_array();
  for (const DiffRow& row : diff.rows) {
    json.begin_object().member("layer", uint64_t{row.layer});
    if (diff.per_head) json.member("head", uint64_t{row.head});
    json.member("differs", row.differs);
    pair_json(json, "k", row.k);
    pair_json(json, "v", row.v);
    json.end_object();
  }
  return json.end_array().end_object().text();
}

// The scales as stored. A model folder stores no scales of Q, so its recorded maxima are dropped
// here.
KvScales as_stored(const std::filesystem::path& path, const FoundScales& found) {
  KvScales scales = found.scales;
  if (source_kind(path) == SourceKind::model_folder) scales.provenance.amax.clear();
  return scales;
}

ScaleDiff compare(const DiffOptions& options, const FoundScales& a, const FoundScales& b) {
  try {
    return diff_scales(as_stored(options.a, a), as_stored(options.b, b), options.tolerance);
  } catch (const Error& error) {
    if (options.json && error.kind() == ErrorKind::check) print(apart_json(options, error));
    throw;
  }
}

}  // namespace

void run_command(const DiffOptions& options) {
  Log log(options.verbosity);
  const FoundScales a = load_diagnosed(options.a, log);
  const FoundScales b = load_diagnosed(options.b, log);
  const ScaleDiff diff = compare(options, a, b);
  for (const std::string& note : diff.notes) log.note("note: " + note);
  for (const std::filesystem::path& path : {options.a, options.b}) {
    const auto from = equalized_from(path);
    if (from)
      log.note(cat("note: ", quote(path.string()), ": was ", equalized_text(*from),
                   ", so its K has factors that the original's has not"));
  }
  options.json ? print(diff_json(options, diff, a, b))
               : print_text(diff_text(diff, options.tolerance));
  const size_t drafts = differing_drafts(diff);
  std::vector<std::string> places;
  if (diff.differing_layers > 0) {
    places.push_back(cat(diff.differing_layers, " of ", all_layers(diff)));
  }
  if (drafts > 0) {
    places.push_back(cat(drafts, " of ", count_of(diff.drafts.size(), "draft layer")));
  }
  if (q_differs(diff)) {
    places.push_back(cat("Q of ", diff.q->differing, " of ", count_of(diff.q->layers, "layer")));
  }
  if (places.empty()) return;
  throw Error(cat(quote(options.a.string()), " and ", quote(options.b.string()), " differ in ",
                  join(places, " and in ")),
              "", ErrorKind::check);
}

}  // namespace fp8kv

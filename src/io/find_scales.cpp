#include "io/find_scales.h"

#include <algorithm>
#include <map>
#include <set>

#include "io/layer_name.h"
#include "io/scale_file_survey.h"
#include "io/scale_layers.h"
#include "io/scale_store.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMakeSome =
    "make some with 'fp8kv calibrate', and put them in with 'fp8kv inject'";

// What the names of a folder say, before a byte is read.
struct Collected {
  struct Candidate {
    const StoredTensor* stored;
    int64_t layer;
    DialectMatch match;
  };
  std::vector<Candidate> candidates;
  std::vector<IgnoredTensor> ignored;
  std::vector<const StoredTensor*> unknown;  // look like scales, but no row has them
  std::string_view prefix;
  bool k_norm = false;
};

// "k_proj.v_scale" and "v_proj.k_scale".
bool is_crossed(std::string_view rest) {
  return rest.ends_with("k_proj.v_scale") || rest.ends_with("v_proj.k_scale");
}

// Adds a tensor whose name is of a row, or of one of the tensors that stand beside scales.
bool add_if_known(const ScaleStore& store, const StoredTensor& tensor, Collected& out) {
  const auto parts = store.split(tensor.name);
  if (!parts) return false;
  out.k_norm = out.k_norm || parts->rest.ends_with("k_norm.weight");
  DialectMatch match = match_scale_name(store.carrier, parts->rest);
  if (match.rows.empty()) {
    if (is_crossed(parts->rest)) {
      const bool v = parts->rest.ends_with("v_scale");
      throw Error(cat(quote(tensor.name), ": is a scale of ", v ? "V" : "K",
                      " at the projection of ", v ? "K" : "V"),
                  "the export went wrong: export or calibrate again");
    }
    const char* reason = why_ignored(parts->rest);
    if (reason) out.ignored.push_back({tensor.name, reason, tensor.dtype, tensor.shape, {}});
    return reason != nullptr;
  }
  if (!out.candidates.empty() && out.prefix != parts->prefix) {
    fail(quote(tensor.name), " and ", quote(out.candidates[0].stored->name),
         ": scales of two different stacks of layers");
  }
  out.prefix = parts->prefix;
  out.candidates.push_back({&tensor, parts->layer, std::move(match)});
  return true;
}

Collected collect(const ScaleStore& store) {
  Collected out;
  for (const StoredTensor& tensor : store.tensors) {
    if (add_if_known(store, tensor, out)) continue;
    if (looks_like_kv_scale(tensor.name)) out.unknown.push_back(&tensor);
  }
  return out;
}

void check_known(const Collected& collected) {
  if (collected.unknown.empty()) return;
  const size_t count = collected.unknown.size();
  const std::string others = count == 1 ? "" : cat(" (and ", count_of(count - 1, "other"), ")");
  throw Error(
      cat(quote(collected.unknown[0]->name), others,
          " looks like a KV scale, but is in a form that is not read"),
      "'fp8kv extract --help' lists the forms that are; calibrate the original model again, "
      "or rename the tensors");
}

std::vector<std::string> names_of(const std::vector<const Dialect*>& rows,
                                  std::string Dialect::*part) {
  std::vector<std::string> names;
  for (const Dialect* row : rows) {
    if (std::find(names.begin(), names.end(), row->*part) == names.end()) {
      names.push_back(row->*part);
    }
  }
  return names;
}

// The config leaves the row open, or names another tool.
[[noreturn]] void fail_to_choose(const std::string& name, const std::vector<const Dialect*>& rows,
                                 const KvConfig& config) {
  const std::vector<std::string> families = names_of(rows, &Dialect::family);
  const bool modelopt = families == std::vector<std::string>{"modelopt"};
  const bool told = config.method != KvMethod::none ||
                    !(config.quant_method.empty() || config.quant_method == "modelopt");
  if (modelopt && !told) {
    throw Error(cat(quote(name),
                    " is named as ModelOpt names the scales of FP8 and of NVFP4 caches alike, and "
                    "neither config.json nor hf_quant_config.json says which"),
                "bring the checkpoint's hf_quant_config.json along");
  }
  if (!told) {
    throw Error(cat(quote(name), " could be of ", join(names_of(rows, &Dialect::name), " or "),
                    ", and config.json has no quantization_config that says which"),
                "bring the checkpoint's own config.json along");
  }
  const std::string found =
      config.quant_method.empty()
          ? cat("hf_quant_config.json says that the producer is ", quote(config.producer))
          : cat("config.json says that ", config.block, ".quant_method is ",
                quote(config.quant_method));
  throw Error(cat(quote(name), " is a name of ", join(families, " or "), ", but ", found),
              "the config is not that of these tensors: bring the right one along");
}

const Dialect* choose(const Collected::Candidate& candidate, const KvConfig& config) {
  for (const Dialect* row : candidate.match.rows) {
    if (row->says(config)) return row;
  }
  fail_to_choose(candidate.stored->name, candidate.match.rows, config);
}

// Two rows may stand beside each other as kv_scale and k_scale, not as two forms of the same.
void check_one_form(const std::vector<ScaleTensor>& tensors) {
  const ScaleTensor* first[2] = {};  // of K or V, of both
  for (const ScaleTensor& tensor : tensors) {
    const ScaleTensor*& known = first[tensor.which == 'b'];
    if (!known) known = &tensor;
    if (known->dialect == tensor.dialect) continue;
    throw Error(cat(quote(known->name), " is a name of ", known->dialect->name, ", ",
                    quote(tensor.name), " one of ", tensor.dialect->name, ": expected one form"),
                "keep the tensors of the form that the runtime reads");
  }
}

// One row may have several names for a scale (those of vLLM's parameters).
void check_each_once(const std::vector<ScaleTensor>& tensors) {
  std::map<std::pair<int64_t, char>, const ScaleTensor*> seen;
  for (const ScaleTensor& tensor : tensors) {
    const auto [at, is_new] = seen.emplace(std::pair(tensor.layer, tensor.which), &tensor);
    if (is_new) continue;
    throw Error(cat(quote(at->second->name), " and ", quote(tensor.name),
                    " are both scales of the same: expected one"),
                "keep the tensors of the form that the runtime reads");
  }
}

std::vector<ScaleTensor> candidates_of(const Collected& collected) {
  std::vector<ScaleTensor> tensors;
  for (const Collected::Candidate& candidate : collected.candidates) {
    const StoredTensor& stored = *candidate.stored;
    tensors.push_back({stored.name,
                       candidate.layer,
                       candidate.match.which,
                       stored.dtype,
                       stored.shape,
                       {},
                       nullptr,
                       join(names_of(candidate.match.rows, &Dialect::name), " or ")});
  }
  return tensors;
}

void choose_rows(const Collected& collected, const KvConfig& config,
                 std::vector<ScaleTensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].dialect = choose(collected.candidates[i], config);
    tensors[i].dialect_name = tensors[i].dialect->name;
  }
  check_one_form(tensors);
  check_each_once(tensors);
}

// All that can be read as numbers, in the order in which they lie in the files.
void read_values(const ScaleStore& store, FoundScales& found) {
  std::map<std::string_view, uint64_t> places;
  for (const StoredTensor& tensor : store.tensors) places.emplace(tensor.name, tensor.place);
  std::multimap<uint64_t, std::function<void()>> reads;
  const auto add = [&](auto& tensor) {
    if (!is_readable_scale(tensor.dtype, tensor.shape)) return;
    reads.emplace(places.at(tensor.name), [&store, &tensor] {
      tensor.values = scale_numbers(store.read(tensor.name), tensor.dtype);
    });
  };
  for (ScaleTensor& tensor : found.tensors) add(tensor);
  for (IgnoredTensor& tensor : found.ignored) add(tensor);
  for (const auto& [place, read] : reads) read();
}

// A message that is as check_scale has it, with the way out that the value suggests.
void check_value(float value, const ScaleTensor& tensor, const std::string& where) {
  try {
    check_scale(value, where);
  } catch (const Error& error) {
    if (value < 0) {
      throw Error(
          error.what(),
          "a negative scale is how runtimes mark one that was never loaded, so it was never "
          "calibrated either: calibrate again");
    }
    if (value == 0 && tensor.dialect->family == "autofp8") {
      throw Error(
          error.what(),
          "AutoFP8 divides 448 by the largest value in FP16, and where that value was below "
          "0.00684 it wrote 0: calibrate again");
    }
    throw;
  }
}

void check_tensors(const ScaleStore& store, const FoundScales& found) {
  for (const IgnoredTensor& tensor : found.ignored) {
    if (!is_offset(tensor.name)) continue;
    const std::string bytes = store.read(tensor.name);
    if (std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; })) continue;
    fail(quote(tensor.name), ": is not 0: scales with an offset cannot be used");
  }
  for (const ScaleTensor& tensor : found.tensors) {
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      const std::string head = tensor.values.size() > 1 ? cat(" head ", i) : "";
      check_value(tensor.values[i], tensor, cat(quote(tensor.name), ":", head));
    }
  }
}

std::vector<std::string> notes_on(const std::vector<IgnoredTensor>& ignored) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const IgnoredTensor& tensor : ignored) by_reason[tensor.reason].push_back(tensor.name);
  std::vector<std::string> notes;
  for (const auto& [reason, names] : by_reason) {
    const std::string others =
        names.size() == 1 ? "" : cat(" and ", count_of(names.size() - 1, "other"));
    notes.push_back(cat("ignored ", quote(names[0]), others, ": ", reason));
  }
  return notes;
}

// The rows that are used, in the order of the table.
std::string dialect_of(const std::vector<ScaleTensor>& tensors) {
  std::set<const Dialect*> rows;
  for (const ScaleTensor& tensor : tensors) rows.insert(tensor.dialect);
  std::vector<std::string> names;
  for (const Dialect* row : rows) names.push_back(row->name);
  return join(names);
}

// The row of the form that counts.
const Dialect& finer_row(const std::vector<ScaleTensor>& tensors) {
  const auto apart = std::find_if(tensors.begin(), tensors.end(),
                                  [](const ScaleTensor& tensor) { return tensor.which != 'b'; });
  return *(apart == tensors.end() ? tensors[0] : *apart).dialect;
}

std::string dtypes_of(const std::vector<ScaleTensor>& tensors, const Dialect& row) {
  std::set<std::string> names;
  for (const ScaleTensor& tensor : tensors) {
    if (tensor.dialect == &row) names.insert(std::string(dtype_name(tensor.dtype)));
  }
  const std::vector<std::string> sorted(names.begin(), names.end());
  return join(sorted);
}

const char* observation_name(Observation observed) {
  return observed == Observation::before_rope  ? "pre_rope"
         : observed == Observation::after_rope ? "post_rope"
                                               : "";
}

// Other tools take AutoFP8's config for scales of their own, which then lack its rounding.
bool is_by_another(const Dialect& row, const std::vector<ScaleTensor>& tensors) {
  std::vector<float> values;
  for (const ScaleTensor& tensor : tensors) {
    values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  }
  return row.family == "autofp8" && !is_autofp8_rounding(values);
}

// Fills in what the values and the config tell, and the diagnoses.
void describe(const Collected& collected, const KvConfig& config, FoundScales& found,
              int64_t n_layers) {
  const Dialect& row = finer_row(found.tensors);
  const bool by_another = is_by_another(row, found.tensors);
  const Observation observed = by_another ? Observation::unknown : row.observation(config);
  Provenance& provenance = found.scales.provenance;
  provenance.source = found.dialect;
  provenance.observation = observation_name(observed);
  provenance.producer = by_another ? "" : config.producer;
  if (config.tgi_script && row.name == "kv_scale") provenance.producer = "TGI pull request 2028";
  provenance.producer_version = by_another ? "" : config.version;
  provenance.stored_dtype = dtypes_of(found.tensors, row);
  provenance.observer = config.observer;
  ScaleCase given{found.tensors, &row,          observed, config.observer,
                  row.floor,     config.format, n_layers, collected.k_norm};
  if (config.floor > 0) given.floor = static_cast<float>(config.floor);
  found.diagnoses = diagnose(given);
}

void refuse_absence(const ScaleStore& store, FoundScales& found) {
  found.absent = true;
  const KvConfig config = store.config();
  if (config.statement.empty() || !config.is_fp8 || !config.is_static) {
    throw Error(cat(store.where, ": has no KV scales"), kMakeSome);
  }
  const bool modelopt = config.method == KvMethod::modelopt;
  found.diagnoses.push_back(diagnose_absence(config.stated_in, modelopt));
  throw Error(cat(store.where, ": has no KV scales, though ", config.stated_in,
                  " says that the cache is FP8",
                  modelopt ? " (ModelOpt's fp8_cast writes none)" : "", ": a runtime would use 1"),
              kMakeSome);
}

void check_is_fp8(const Collected& collected, const KvConfig& config) {
  if (config.statement.empty() || config.is_fp8) return;
  throw Error(cat(config.statement, ", so ", quote(collected.candidates[0].stored->name),
                  " is not the scale of an FP8 cache"),
              "scales for another type do not convert: calibrate again");
}

// Fills `found` as far as it gets; throws the refusal.
void survey_into(const ScaleStore& store, FoundScales& found) {
  const Collected collected = with_context(store.where, [&] { return collect(store); });
  found.tensors = candidates_of(collected);
  found.ignored = collected.ignored;
  found.notes = notes_on(found.ignored);
  for (const StoredTensor* tensor : collected.unknown) {
    found.ignored.push_back(
        {tensor->name, "in a form that is not read", tensor->dtype, tensor->shape, {}});
  }
  with_context(store.where, [&] {
    read_values(store, found);
    check_known(collected);
  });
  if (collected.candidates.empty()) refuse_absence(store, found);
  const KvConfig config = store.config();
  found.kv_cache_torch_dtype = config.torch_dtype;
  check_is_fp8(collected, config);
  const ModelConfig model = store.model();
  with_context(store.where, [&] {
    choose_rows(collected, config, found.tensors);
    for (const ScaleTensor& tensor : found.tensors) check_scale_form(tensor, model.n_kv_heads);
    found.dialect = dialect_of(found.tensors);
    describe(collected, config, found, model.n_layers);
    check_tensors(store, found);
  });
  KvScales scales;
  scales.format = config.format;
  scales.model_type = model.model_type;
  scales.n_kv_heads = model.n_kv_heads;
  scales.provenance = found.scales.provenance;
  with_context(store.where,
               [&] { scales.layers = scales_by_layer(found.tensors, model.n_layers); });
  check_values(scales, store.where);
  found.scales = std::move(scales);
}

FoundScales survey(const ScaleStore& store) {
  FoundScales found;
  try {
    survey_into(store, found);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    found.refusal = error;
  }
  return found;
}

FoundScales or_refusal(FoundScales found) {
  if (found.refusal) throw *found.refusal;
  return found;
}

}  // namespace

FoundScales survey_scales(const Checkpoint& checkpoint) {
  return survey(store_of(checkpoint));
}

bool is_scale_folder(const fs::path& folder) {
  return is_rank_folder(folder) || is_npz_folder(folder);
}

FoundScales survey_scales(const fs::path& path) {
  if (!fs::is_directory(path)) return survey_scale_file(path);
  if (is_rank_folder(path)) return survey(open_rank_folder(path));
  if (is_npz_folder(path)) return survey(open_npz_folder(path));
  return survey_scales(Checkpoint::open(path));
}

std::optional<FoundScales> find_scales(const Checkpoint& checkpoint) {
  const ScaleStore store = store_of(checkpoint);
  const bool any =
      std::any_of(store.tensors.begin(), store.tensors.end(), [&](const StoredTensor& tensor) {
        const auto parts = store.split(tensor.name);
        return looks_like_kv_scale(tensor.name) ||
               (parts && !match_scale_name(store.carrier, parts->rest).rows.empty());
      });
  if (!any) return std::nullopt;
  return or_refusal(survey(store));
}

FoundScales scales_at(const Checkpoint& checkpoint) {
  return or_refusal(survey_scales(checkpoint));
}

FoundScales scales_at(const fs::path& path) {
  return or_refusal(survey_scales(path));
}

}  // namespace fp8kv

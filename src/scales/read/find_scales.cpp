#include "scales/read/find_scales.h"

#include <algorithm>
#include <map>
#include <set>

#include "scales/read/collect_scales.h"
#include "scales/read/scale_file_survey.h"
#include "scales/read/scale_layers.h"
#include "scales/read/scale_store.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMakeSome =
    "make some with 'fp8kv calibrate', and put them in with 'fp8kv inject'";

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

// Where a checkpoint has scales for K and V apart and for both together, those apart are used: the
// dialect of the scales that are used.
const Dialect& dialect_in_use(const std::vector<ScaleTensor>& tensors) {
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

// What inject noted beside all scales that count: they are its own, whatever the config is like.
Observation noted_observation(const ScaleStore& store, const std::vector<ScaleTensor>& tensors,
                              const Dialect& row) {
  std::set<std::string> notes;
  for (const ScaleTensor& tensor : tensors) {
    if (tensor.dialect == &row) notes.insert(store.observation(tensor.name));
  }
  if (notes == std::set<std::string>{"post_rope"}) return Observation::after_rope;
  if (notes == std::set<std::string>{"pre_rope"}) return Observation::before_rope;
  return Observation::unknown;
}

struct Origin {
  Observation observed = Observation::unknown;
  std::string producer;
  std::string version;
};

Origin origin_of(const ScaleStore& store, const std::vector<ScaleTensor>& tensors,
                 const Dialect& row, const KvConfig& config) {
  const Observation noted = noted_observation(store, tensors, row);
  if (noted != Observation::unknown) return {noted, "fp8kv", ""};
  if (is_by_another(row, tensors)) return {};
  const bool tgi = config.tgi_script && row.name == "kv_scale";
  return {row.observation(config), tgi ? "TGI pull request 2028" : config.producer, config.version};
}

// Whether some layers hold no cache of their own, and those alone have no scale.
bool is_mixed(const ModelDescription& model, const std::vector<ScaleTensor>& tensors) {
  if (model.unclear) return false;
  std::set<int64_t> layers;
  for (const ScaleTensor& tensor : tensors) layers.insert(tensor.layer);
  bool mixed = false;
  for (int64_t layer = 0; layer < model.n_layers(); ++layer) {
    if (layers.contains(layer)) continue;
    if (model.writes_cache(layer)) return false;
    mixed = true;
  }
  return mixed;
}

// Fills in what the values and the config tell, and the diagnoses.
void describe(const ScaleStore& store, const KvConfig& config, bool k_norm, int64_t n_layers,
              bool mixed, FoundScales& found) {
  const Dialect& row = dialect_in_use(found.tensors);
  const Origin origin = origin_of(store, found.tensors, row, config);
  Provenance& provenance = found.scales.provenance;
  provenance.source = found.dialect;
  provenance.observation = observation_name(origin.observed);
  provenance.producer = origin.producer;
  provenance.producer_version = origin.version;
  provenance.stored_dtype = dtypes_of(found.tensors, row);
  provenance.observer = config.observer;
  const float floor = config.floor > 0 ? static_cast<float>(config.floor) : row.floor;
  found.diagnoses = diagnose({found.tensors, &row, origin.observed, config.observer, floor,
                              config.format, n_layers, mixed, k_norm});
}

void refuse_absence(const ScaleStore& store, FoundScales& found) {
  found.absent = true;
  const KvConfig config = store.config();
  if (config.statement.empty() || !config.is_fp8 || !config.is_static) {
    throw Error(cat(store.where, ": has no KV scales"), kMakeSome);
  }
  const bool modelopt = config.method == QuantMethod::modelopt;
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
  const Collected collected = with_context(store.where, [&] { return collect_scales(store); });
  found.tensors = candidate_tensors(collected);
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
  const ModelDescription model = store.model();
  with_context(store.where, [&] {
    choose_rows(collected, config, found.tensors);
    for (const ScaleTensor& tensor : found.tensors) check_scale_form(tensor, model.n_kv_heads());
    found.dialect = dialect_of(found.tensors);
    const bool mixed = is_mixed(model, found.tensors);
    describe(store, config, collected.k_norm, model.n_layers(), mixed, found);
    check_tensors(store, found);
    if (mixed) {
      throw Error(
          "has layers without a KV cache, and scales for all others: scale files are for "
          "models with one in every layer",
          "'fp8kv extract --list' shows the scales");
    }
  });
  KvScales scales;
  scales.format = config.format;
  scales.model_type = model.model_type;
  scales.n_kv_heads = model.n_kv_heads();
  scales.provenance = found.scales.provenance;
  with_context(store.where,
               [&] { scales.layers = scales_by_layer(found.tensors, model.n_layers()); });
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

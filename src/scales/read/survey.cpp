#include "scales/read/survey.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "scales/read/collect_scales.h"
#include "scales/read/folder_evidence.h"
#include "scales/read/q_scales.h"
#include "scales/read/scale_layers.h"
#include "scales/read/scale_origin.h"

namespace fp8kv {
namespace {

constexpr const char* kMakeSome =
    "make some with 'fp8kv calibrate', and put them in with 'fp8kv inject'";

// Throws the message of check_scale, with the way out that the value suggests.
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

// The rows in use, in the order of the table.
std::string dialect_of(const std::vector<ScaleTensor>& tensors) {
  std::set<const Dialect*> rows;
  for (const ScaleTensor& tensor : tensors) rows.insert(tensor.dialect);
  std::vector<std::string> names;
  for (const Dialect* row : rows) names.push_back(row->name);
  return join(names);
}

// One survey. Each step fills in a part of the result, or throws the refusal.
class Survey {
 public:
  explicit Survey(const ScaleStore& store) : store_(store) {}

  FoundScales run() {
    try {
      take_all();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      found_.refusal = error;
    }
    store_.check_unchanged();
    return std::move(found_);
  }

 private:
  // Runs a step whose errors name the folder.
  template <typename Step>
  void in_folder(const Step& step) {
    with_context(store_.where(), step);
  }

  void take_all() {
    in_folder([&] { collected_ = collect_scales(store_); });
    list_tensors();
    in_folder([&] {
      read_values();
      check_known(collected_);
    });
    if (collected_.candidates.empty() && !collected_.drafts.empty()) {
      throw Error(cat(store_.where(), ": has KV scales of layers that draft tokens alone, such as ",
                      quote(collected_.drafts[0].stored->name)),
                  kMakeSome);
    }
    if (collected_.candidates.empty()) refuse_absence();
    config_ = store_.config();
    found_.kv_cache_torch_dtype = config_.torch_dtype;
    check_cache();
    model_ = store_.model();
    in_folder([&] {
      choose_rows(collected_.candidates, config_, found_.tensors);
      for (const ScaleTensor& tensor : found_.tensors) {
        check_scale_form(tensor, model_.kv_heads_of(tensor.layer));
      }
      // Equal values under a second name need no note: inject itself writes such names.
      for (IgnoredTensor& each : take_out_duplicates(found_.tensors)) {
        found_.ignored.push_back(std::move(each));
      }
      ignore_layers_without_cache();
      describe();
      check_tensors();
    });
    make_scales();
  }

  void list_tensors() {
    found_.tensors = candidate_tensors(collected_.candidates);
    found_.draft_tensors = candidate_tensors(collected_.drafts);
    found_.q_tensors = q_tensors(store_);
    found_.ignored = collected_.ignored;
    found_.notes = notes_on(found_.ignored);
    for (const StoredTensor* tensor : collected_.unknown) {
      found_.ignored.push_back(
          {tensor->name, "in a form that is not read", tensor->dtype, tensor->shape, {}});
    }
  }

  // Reads every tensor of numbers, in the order of the files' bytes.
  void read_values() {
    std::map<std::string_view, uint64_t> places;
    for (const StoredTensor& tensor : store_.tensors()) places.emplace(tensor.name, tensor.place);
    std::multimap<uint64_t, std::function<void()>> reads;
    const auto add = [&](auto& tensor) {
      if (!is_readable_scale(tensor.dtype, tensor.shape)) return;
      reads.emplace(places.at(tensor.name), [this, &tensor] {
        tensor.values = scale_numbers(store_.read(tensor.name), tensor.dtype);
      });
    };
    for (ScaleTensor& tensor : found_.tensors) add(tensor);
    for (ScaleTensor& tensor : found_.draft_tensors) add(tensor);
    for (ScaleTensor& tensor : found_.q_tensors) add(tensor);
    for (IgnoredTensor& tensor : found_.ignored) add(tensor);
    for (const auto& [place, read] : reads) read();
  }

  [[noreturn]] void refuse_absence() {
    found_.absent = true;
    const KvConfig config = store_.config();
    if (config.statement.empty() || !config.stated || !config.is_static) {
      throw Error(cat(store_.where(), ": has no KV scales"), kMakeSome);
    }
    const bool modelopt = config.method == QuantMethod::modelopt;
    found_.diagnoses.push_back(diagnose_absence(config.stated_in, modelopt));
    throw Error(
        cat(store_.where(), ": has no KV scales, though ", config.stated_in,
            " says that the cache is ", *config.stated == KvFormat::nvfp4 ? "NVFP4" : "FP8",
            modelopt ? " (ModelOpt's fp8_cast writes none)" : "", ": a runtime would use 1"),
        kMakeSome);
  }

  void check_cache() const {
    if (config_.statement.empty() || config_.stated) return;
    throw Error(cat(config_.statement, ", so ", quote(collected_.candidates[0].stored->name),
                    " is the scale of neither an FP8 nor an NVFP4 cache"),
                "scales for another type do not convert: calibrate again");
  }

  bool is_without_cache(const ScaleTensor& tensor) const {
    const auto layer = static_cast<size_t>(tensor.layer);
    return layer < model_.has_cache.size() && !model_.has_cache[layer];
  }

  // Some tools write a scale for every attention, even one that reads another layer's cache. No
  // runtime's cache uses such a scale.
  void ignore_layers_without_cache() {
    std::vector<IgnoredTensor> unused;
    for (const ScaleTensor& tensor : found_.tensors) {
      if (!is_without_cache(tensor)) continue;
      unused.push_back({tensor.name, "scales of a layer that writes no KV cache", tensor.dtype,
                        tensor.shape, tensor.values});
    }
    if (unused.size() == found_.tensors.size()) {
      fail("has KV scales only for layers that write no KV cache, such as ", quote(unused[0].name));
    }
    std::erase_if(found_.tensors, [&](const auto& tensor) { return is_without_cache(tensor); });
    ignore_also(unused);
  }

  void ignore_also(const std::vector<IgnoredTensor>& tensors) {
    for (std::string& note : notes_on(tensors)) found_.notes.push_back(std::move(note));
    found_.ignored.insert(found_.ignored.end(), tensors.begin(), tensors.end());
  }

  // Fills in provenance and diagnoses from the values and the config.
  void describe() {
    found_.dialect = dialect_of(found_.tensors);
    const Origin origin = origin_of(store_, found_.tensors, config_);
    Provenance& provenance = found_.scales.provenance;
    provenance.source = found_.dialect;
    const bool certain = origin.observed != Observation::likely_before_rope;
    provenance.observation = certain ? origin.observed : Observation::unknown;
    provenance.producer = origin.producer;
    provenance.producer_version = origin.version;
    provenance.stored_dtype = origin.stored_dtype;
    provenance.observer = origin.observer;
    provenance.accepted_foreign = store_.noted_foreign();
    found_.diagnoses = diagnose(
        {.tensors = found_.tensors,
         .dialect = origin.row,
         .observed = origin.observed,
         .observer = origin.observer,
         .floor = config_.floor > 0 ? static_cast<float>(config_.floor) : origin.row->floor,
         .format = config_.format,
         .has_cache = model_.has_cache,
         .layers_unclear = model_.unclear.has_value(),
         .k_norm = collected_.k_norm});
  }

  void check_tensors() const {
    for (const IgnoredTensor& tensor : found_.ignored) {
      if (!is_offset(tensor.name)) continue;
      const std::string bytes = store_.read(tensor.name);
      if (std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; })) continue;
      fail(quote(tensor.name), ": is not 0: scales with an offset cannot be used");
    }
    for (const ScaleTensor& tensor : found_.tensors) {
      for (size_t i = 0; i < tensor.values.size(); ++i) {
        const std::string head = tensor.values.size() > 1 ? cat(" head ", i) : "";
        check_value(tensor.values[i], tensor, cat(quote(tensor.name), ":", head));
      }
    }
  }

  void make_scales() {
    KvScales scales;
    scales.format = config_.format;
    scales.model_type = model_.model_type;
    scales.n_kv_heads = model_.n_kv_heads;
    scales.layer_kv_heads = model_.layer_kv_heads;
    scales.provenance = found_.scales.provenance;
    in_folder([&] {
      scales.layers = scales_by_layer(found_.tensors, model_);
      add_q_scales(scales);
      scales.drafts = scales_of_drafts();
    });
    check_values(scales, store_.where());
    found_.scales = std::move(scales);
    adopt_evidence(found_, store_.noted_evidence(), store_.where());
  }

  void add_q_scales(KvScales& scales) {
    const QScales found = q_scales(found_.q_tensors, model_);
    for (ScaleTensor& tensor : found_.q_tensors) tensor.dialect_name = found_.dialect;
    for (size_t i = 0; i < std::min(scales.layers.size(), found.by_layer.size()); ++i) {
      if (scales.layers[i].has_cache()) scales.layers[i].q = {found.by_layer[i]};
    }
    if (found.diagnosis) found_.diagnoses.push_back(*found.diagnosis);
    if (found.why_not.empty()) return;
    std::vector<IgnoredTensor> unused;
    for (const ScaleTensor& tensor : found_.q_tensors) {
      unused.push_back({tensor.name, found.why_not, tensor.dtype, tensor.shape, tensor.values});
    }
    ignore_also(unused);
    found_.q_tensors.clear();
  }

  std::vector<DraftScales> scales_of_drafts() {
    choose_rows(collected_.drafts, config_, found_.draft_tensors);
    for (const ScaleTensor& tensor : found_.draft_tensors) {
      check_scale_form(tensor, model_.n_kv_heads);
    }
    ignore_also(take_out_duplicates(found_.draft_tensors));
    // Treats the draft layers with scales as a model of their own. A tensor's `layer` is the index
    // in the store's list of draft layers.
    const std::vector<std::string> names = store_.draft_layers();
    StoredModel drafting{model_.model_type, model_.n_kv_heads, std::vector<bool>(names.size())};
    for (const ScaleTensor& tensor : found_.draft_tensors) {
      drafting.has_cache[static_cast<size_t>(tensor.layer)] = true;
      for (const float value : tensor.values) check_value(value, tensor, quote(tensor.name) + ":");
    }
    const std::vector<LayerScales> layers = scales_by_layer(found_.draft_tensors, drafting);
    std::vector<DraftScales> drafts;
    for (size_t i = 0; i < names.size(); ++i) {
      if (layers[i].has_cache()) drafts.push_back({names[i], layers[i], {}});
    }
    return drafts;
  }

  const ScaleStore& store_;
  Collected collected_;
  KvConfig config_;
  StoredModel model_;
  FoundScales found_;
};

}  // namespace

FoundScales survey(const ScaleStore& store) {
  return Survey(store).run();
}

std::vector<std::string> surveyed_tensors(const ScaleStore& store) {
  const Collected collected = collect_scales(store);
  std::set<std::string> names;
  const auto add = [&](const auto& tensor) {
    const bool offset = is_offset(tensor.name) && is_readable_scale(DType::f32, tensor.shape);
    if (offset || is_readable_scale(tensor.dtype, tensor.shape)) names.insert(tensor.name);
  };
  for (const auto& each : collected.candidates) add(*each.stored);
  for (const auto& each : collected.drafts) add(*each.stored);
  for (const IgnoredTensor& tensor : collected.ignored) add(tensor);
  for (const StoredTensor* tensor : collected.unknown) add(*tensor);
  for (const ScaleTensor& tensor : q_tensors(store)) add(tensor);
  return {names.begin(), names.end()};
}

bool has_scale_names(const ScaleStore& store) {
  const std::vector<StoredTensor>& tensors = store.tensors();
  return std::any_of(tensors.begin(), tensors.end(), [&](const StoredTensor& tensor) {
    const auto parts = store.split(tensor.name);
    return looks_like_kv_scale(tensor.name) ||
           (parts && !match_scale_name(store.carrier(), parts->rest).rows.empty());
  });
}

}  // namespace fp8kv

#include "scales/read/collect_scales.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"

namespace fp8kv {
namespace {

// "k_proj.v_scale" or "v_proj.k_scale": a scale at the wrong projection.
bool is_crossed(std::string_view rest) {
  return rest.ends_with("k_proj.v_scale") || rest.ends_with("v_proj.k_scale");
}

// The index of the draft layer that a tensor belongs to, and the name behind the layer's.
struct InDraft {
  size_t draft;
  std::string_view rest;
};

std::optional<InDraft> in_draft(const std::vector<std::string>& drafts, std::string_view tensor) {
  for (size_t i = 0; i < drafts.size(); ++i) {
    const std::string& layer = drafts[i];
    const bool within =
        tensor.size() > layer.size() && tensor.starts_with(layer) && tensor[layer.size()] == '.';
    if (within) return InDraft{i, tensor.substr(layer.size() + 1)};
  }
  return std::nullopt;
}

// Adds a tensor of a draft layer, in the same way as add_if_known.
bool add_draft(const ScaleStore& store, const StoredTensor& tensor, const InDraft& place,
               Collected& out) {
  DialectMatch match = match_scale_name(store.carrier(), place.rest);
  if (match.rows.empty()) {
    const char* reason = why_ignored(place.rest);
    if (reason) out.ignored.push_back({tensor.name, reason, tensor.dtype, tensor.shape, {}});
    return reason != nullptr;
  }
  out.drafts.push_back({&tensor, static_cast<int64_t>(place.draft), std::move(match)});
  return true;
}

// Adds a tensor whose name matches a row, or that is known to stand beside scales.
bool add_if_known(const ScaleStore& store, const StoredTensor& tensor, Collected& out) {
  const auto parts = store.split(tensor.name);
  if (!parts) return false;
  out.k_norm = out.k_norm || parts->rest.ends_with("k_norm.weight");
  DialectMatch match = match_scale_name(store.carrier(), parts->rest);
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

// Throws: the config leaves the row open, or names another tool.
[[noreturn]] void fail_to_choose(const std::string& name, const std::vector<const Dialect*>& rows,
                                 const KvConfig& config) {
  const std::vector<std::string> families = names_of(rows, &Dialect::family);
  const bool modelopt = families.front() == "modelopt";
  const bool told = config.method != QuantMethod::none ||
                    !(config.quant_method.empty() || config.quant_method.starts_with("modelopt"));
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
  const bool by_quark = std::find(families.begin(), families.end(), "quark") != families.end();
  if (by_quark && config.quant_method == "quark" && !config.by_quark) {
    throw Error(
        cat(quote(name), " is named as Quark names the scales of a KV cache, but config.json: ",
            config.key, ".export.kv_cache_group names no layers"),
        "where these are the cache's, list them there, as in [\"*k_proj\", \"*v_proj\"]");
  }
  const std::string found =
      config.quant_method.empty()
          ? cat("hf_quant_config.json says that the producer is ", quote(config.producer))
          : cat("config.json says that ", config.key, ".quant_method is ",
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

// Throws if the tensors mix two forms. kv_scale may stand beside k_scale and v_scale.
void check_one_form(const std::vector<ScaleTensor>& tensors) {
  const ScaleTensor* first[2] = {};  // [0]: of K or V, [1]: of both
  for (const ScaleTensor& tensor : tensors) {
    const ScaleTensor*& known = first[tensor.of == ScaleOf::both];
    if (!known) known = &tensor;
    if (known->dialect == tensor.dialect) continue;
    throw Error(cat(quote(known->name), " is a name of ", known->dialect->name, ", ",
                    quote(tensor.name), " one of ", tensor.dialect->name, ": expected one form"),
                "keep the tensors of the form that the runtime reads");
  }
}

// The values of a scale for messages: one number, or one per head.
std::string values_text(const ScaleTensor& tensor) {
  std::vector<std::string> numbers;
  for (const float value : tensor.values) numbers.push_back(cat(value));
  return join(numbers, ", ");
}

}  // namespace

Collected collect_scales(const ScaleStore& store) {
  Collected out;
  const std::vector<std::string> drafts = store.draft_layers();
  for (const StoredTensor& tensor : store.tensors()) {
    const auto place = in_draft(drafts, tensor.name);
    if (place ? add_draft(store, tensor, *place, out) : add_if_known(store, tensor, out)) continue;
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

std::vector<ScaleTensor> candidate_tensors(const std::vector<Collected::Candidate>& candidates) {
  std::vector<ScaleTensor> tensors;
  for (const Collected::Candidate& candidate : candidates) {
    const StoredTensor& stored = *candidate.stored;
    tensors.push_back({stored.name,
                       candidate.layer,
                       candidate.match.of,
                       stored.dtype,
                       stored.shape,
                       {},
                       nullptr,
                       join(names_of(candidate.match.rows, &Dialect::name), " or ")});
  }
  return tensors;
}

void choose_rows(const std::vector<Collected::Candidate>& candidates, const KvConfig& config,
                 std::vector<ScaleTensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].dialect = choose(candidates[i], config);
    tensors[i].dialect_name = tensors[i].dialect->name;
  }
}

std::vector<IgnoredTensor> take_out_duplicates(std::vector<ScaleTensor>& tensors) {
  std::map<std::pair<int64_t, ScaleOf>, const ScaleTensor*> kept;
  for (const ScaleTensor& tensor : tensors) {
    const ScaleTensor*& one = kept[{tensor.layer, tensor.of}];
    // Rows are ordered as in the table, so the lowest address is the first row.
    if (!one || std::less<>()(tensor.dialect, one->dialect)) one = &tensor;
  }
  std::vector<IgnoredTensor> duplicates;
  std::vector<ScaleTensor> rest;
  for (const ScaleTensor& tensor : tensors) {
    const ScaleTensor& one = *kept.at({tensor.layer, tensor.of});
    if (&one == &tensor) {
      rest.push_back(tensor);
    } else if (one.values == tensor.values) {
      duplicates.push_back({tensor.name, "the same scales under a second name", tensor.dtype,
                            tensor.shape, tensor.values});
    } else {
      throw Error(cat(quote(one.name), " is ", values_text(one), ", ", quote(tensor.name), " is ",
                      values_text(tensor), ": expected the same, as both are one scale"),
                  "runtimes differ in which of the two they read: inject the right scales into the "
                  "original model again");
    }
  }
  tensors = std::move(rest);
  check_one_form(tensors);
  return duplicates;
}

}  // namespace fp8kv

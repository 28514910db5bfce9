#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/describe_checkpoint.h"
#include "commands/commands.h"
#include "commands/parts/calibration_time.h"
#include "config/describe/describe_model.h"
#include "config/values/language_config.h"
#include "files/file.h"
#include "files/lfs_pointer.h"
#include "inputs/cache_choice.h"
#include "inputs/model_cache.h"
#include "json/json.h"
#include "model/cache/capacity.h"
#include "options/kv_dtype.h"
#include "show/models/plan_text.h"
#include "show/output.h"

namespace fp8kv {
namespace {

DType own_dtype(const Json& config, const std::filesystem::path& file) {
  const auto name = find_dtype(config);
  if (!name) {
    throw Error(cat(quote(file.string()), ": names no dtype"),
                "add the \"torch_dtype\" of the model to it");
  }
  const auto dtype = dtype_from_torch_name(name->as_string());
  if (dtype) return *dtype;
  fail(name->where(), ": is ", quote(name->as_string()), ", which is no dtype");
}

int64_t context_of(const PlanOptions& options, const ModelDescription& model) {
  if (options.context > 0) return options.context;
  if (model.max_seq_len > 0) return model.max_seq_len;
  throw Error(cat(quote(options.model.string()), ": does not say how long its context is"),
              "pass --context", ErrorKind::usage);
}

bool is_lfs_pointer_file(const std::filesystem::directory_entry& entry) {
  constexpr uintmax_t kLongest = 1024;  // the limit of git-LFS
  return entry.is_regular_file() && entry.file_size() <= kLongest &&
         is_lfs_pointer(read_text(entry.path()));
}

// Finds a folder that was cloned before its weights: a config, and no weights or git-LFS
// pointers only. Returns the first pointer, or "" if there are no weights. Returns nullopt for any
// other folder, which Checkpoint::open reads or refuses.
std::optional<std::string> pointer_of_bare(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / form_of(folder).config)) return std::nullopt;
  std::string first;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    for (const char* weights : {".safetensors", ".bin", ".pt", ".pth"}) {
      if (entry.path().extension() != weights) continue;
      if (!is_lfs_pointer_file(entry)) return std::nullopt;
      const std::string pointer = entry.path().string();
      first = first.empty() ? pointer : std::min(first, pointer);
    }
  }
  return first;
}

[[noreturn]] void fail_for_memory(const std::string& folder, const std::string& pointer) {
  const std::string open = ", so what weights leave of --memory is not known";
  if (pointer.empty()) {
    throw Error(cat(quote(folder), ": has no weights", open),
                "leave out --memory, or fetch the model", ErrorKind::usage);
  }
  throw Error(cat(quote(pointer), ": is a git-LFS pointer, not the file itself", open),
              "leave out --memory, or run 'git lfs pull' in the repository that it is from",
              ErrorKind::usage);
}

PlanSubject subject_of(const PlanOptions& options) {
  const std::optional<std::string> pointer = pointer_of_bare(options.model);
  const bool bare = pointer.has_value();
  if (bare && options.memory > 0) fail_for_memory(options.model.string(), *pointer);
  if (bare && options.calibration_time) {
    throw Error(cat("--calibration-time: ", quote(options.model.string()), ": has no weights"),
                "fetch the model, or give its address: hf://org/name", ErrorKind::usage);
  }
  std::optional<Checkpoint> checkpoint;
  if (!bare) checkpoint = Checkpoint::open(options.model);
  const std::filesystem::path file = options.model / form_of(options.model).config;
  const Json config = bare ? read_config(options.model) : checkpoint->config();
  PlanSubject subject{bare ? describe_model(config) : describe_model(*checkpoint),
                      {},
                      {},
                      {},
                      own_dtype(config, file)};
  if (subject.model.unclear) throw *subject.model.unclear;
  if (subject.model.cache_layers() == 0) {
    throw Error(cat(quote(file.string()), ": no layer of this model holds a KV cache"),
                "there is nothing to plan: FP8 makes no other memory smaller");
  }
  if (bare) {
    subject.lfs_pointer = *pointer;
  } else {
    subject.weights = weight_bytes(*checkpoint);
  }
  with_context(cat("--tp ", options.tp), [&] { kv_heads_per_gpu(subject.model, options.tp); });
  if (checkpoint && options.calibration_time) {
    subject.calibration = calibration_time(*checkpoint);
  }
  const auto taken =
      static_cast<uint64_t>(static_cast<double>(options.memory) * options.memory_share);
  if (options.memory > 0 && options.memory_share < 1) {
    subject.memory_note =
        cat(significant(options.memory_share * 100, 3), " % of ", human_bytes(options.memory));
  }
  subject.deployment = {taken, options.tp, options.batch, context_of(options, subject.model)};
  return subject;
}

// The layers that stay in the model's dtype: those of --kv-cache-dtype-skip-layers, and those that
// vLLM adds.
std::vector<int64_t> layers_left(const std::string& dtype, const PlanOptions& options,
                                 const ModelDescription& model, Log& log) {
  const std::vector<int64_t> by_vllm = layers_left_by_vllm(dtype, model);
  if (!by_vllm.empty()) {
    log.note(cat("note: ", dtype, ": vLLM leaves ", layer_list({by_vllm.begin(), by_vllm.end()}),
                 " in 16 bit, and so does this plan"));
  }
  std::vector<int64_t> left = skipped_layers(options.skip_layers, model);
  left.insert(left.end(), by_vllm.begin(), by_vllm.end());
  std::sort(left.begin(), left.end());
  left.erase(std::unique(left.begin(), left.end()), left.end());
  return left;
}

// Throws a usage Error if the format cannot hold a layer that is not in `left`.
void check_packed(const PackedFormat& format, const ModelDescription& model,
                  const std::vector<int64_t>& left) {
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (!model.writes_cache(i) || std::binary_search(left.begin(), left.end(), i)) continue;
    const auto misfit = format.misfit(model.layer(i), i);
    if (!misfit) continue;
    throw Error(
        cat("--kv-cache-dtype ", format.name, ": ", misfit->found, ", expected ", misfit->expected),
        "use fp8_e4m3", ErrorKind::usage);
  }
}

TokenBytes bytes_in(const std::string& dtype, const PlanOptions& options,
                    const PlanSubject& subject, Log& log) {
  const ModelDescription& model = subject.model;
  if (const PackedFormat* packed = find_packed_format(dtype)) {
    const std::vector<int64_t> left = layers_left(dtype, options, model, log);
    check_packed(*packed, model, left);
    return token_bytes(model, *packed, left, subject.own);
  }
  const CacheType type = kv_dtype_from_name(dtype).value_or(subject.own);
  if (is_compute_dtype(type)) return token_bytes(model, type);
  const std::vector<int64_t> left = layers_left(dtype, options, model, log);
  return token_bytes(model, model_cache(type, subject.own, layer_names(left), model));
}

}  // namespace

void run_command(const PlanOptions& options) {
  Log log(options.verbosity);
  const PlanSubject subject = subject_of(options);
  if (subject.model.max_seq_len > 0 && options.context > subject.model.max_seq_len) {
    log.warn(cat("--context ", options.context, ": is longer than the model's context, ",
                 subject.model.max_seq_len, " tokens; runtimes refuse it or need a RoPE scaling"));
  }
  std::vector<CachePlan> plans;
  const TokenBytes baseline = token_bytes(subject.model, CacheType(subject.own));
  for (const std::string& dtype : options.kv_cache_dtypes) {
    plans.push_back(plan_cache(subject.model, subject.weights.value_or(WeightBytes()),
                               subject.deployment, bytes_in(dtype, options, subject, log),
                               baseline));
    plans.back().name = dtype == "auto" ? kv_dtype_name(subject.own) : dtype;
  }
  options.json ? print(plan_json(subject, plans)) : print_text(plan_text(subject, plans));
}

}  // namespace fp8kv

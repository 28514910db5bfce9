#include <filesystem>
#include <optional>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/describe_checkpoint.h"
#include "commands/commands.h"
#include "config/describe/describe_model.h"
#include "config/describe/language_config.h"
#include "files/file.h"
#include "files/lfs_pointer.h"
#include "inputs/cache_choice.h"
#include "json/json.h"
#include "model/capacity.h"
#include "show/output.h"
#include "show/plan_text.h"

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
  constexpr uintmax_t kLongest = 1024;  // as git-LFS has it
  return entry.is_regular_file() && entry.file_size() <= kLongest &&
         is_lfs_pointer(read_text(entry.path()));
}

// A folder with a config.json and nothing that could be weights, or git-LFS's pointers to them, as
// someone has it who asks before fetching 140 GB. Anything between that and a model is an error of
// Checkpoint::open.
bool is_bare(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "config.json")) return false;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    for (const char* weights : {".safetensors", ".bin", ".pt", ".pth"}) {
      if (entry.path().extension() == weights && !is_lfs_pointer_file(entry)) return false;
    }
  }
  return true;
}

PlanSubject subject_of(const PlanOptions& options) {
  const bool bare = is_bare(options.model);
  if (bare && options.memory > 0) {
    throw Error(cat(quote(options.model.string()),
                    ": has no weights, so what they leave of --memory is not known"),
                "leave out --memory, or fetch the model", ErrorKind::usage);
  }
  std::optional<Checkpoint> checkpoint;
  if (!bare) checkpoint = Checkpoint::open(options.model);
  const std::filesystem::path file = options.model / "config.json";
  const Json config = bare ? Json::read(file, JsonNumbers::python) : checkpoint->config();
  PlanSubject subject{
      bare ? describe_model(config) : describe_model(*checkpoint), {}, {}, own_dtype(config, file)};
  if (subject.model.unclear) throw *subject.model.unclear;
  if (!bare) subject.weights = weight_bytes(*checkpoint);
  with_context(cat("--tp ", options.tp), [&] { kv_heads_per_gpu(subject.model, options.tp); });
  subject.deployment = {options.memory, options.tp, options.batch,
                        context_of(options, subject.model)};
  return subject;
}

}  // namespace

void run_command(const PlanOptions& options) {
  const PlanSubject subject = subject_of(options);
  std::vector<CachePlan> plans;
  for (const std::optional<CacheType>& asked : options.kv_cache_dtypes) {
    const CacheType dtype = asked.value_or(subject.own);
    check_holds(dtype, subject.model);
    plans.push_back(plan_cache(subject.model, subject.weights.value_or(WeightBytes()),
                               subject.deployment, dtype, subject.own));
  }
  print(options.json ? plan_json(subject, plans) : plan_text(subject, plans));
}

}  // namespace fp8kv

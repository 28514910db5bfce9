#include "commands/parts/verify_with.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/drafts/drafter.h"
#include "scales/loaded/compare_loaded.h"
#include "scales/loaded/load_with_python.h"
#include "scales/read/find_scales.h"
#include "scales/read/stores/open_store.h"
#include "scales/scale_names.h"
#include "show/output.h"
#include "show/verify/loaded_report.h"

namespace fp8kv {
namespace {

std::string asked_runtime(const VerifyOptions& options) {
  if (options.runtimes.empty()) return "";
  const std::string& name = options.runtimes.front();
  const bool known = name == "vllm" || name == "sglang" || name == "transformers";
  if (options.runtimes.size() == 1 && known) return name;
  throw Error(cat("--runtime: is ", quote(join(options.runtimes)),
                  ", expected vllm, sglang or transformers"),
              "--with runs the version that is installed, and one runtime at a time",
              ErrorKind::usage);
}

LoadRequest request_of(const VerifyOptions& options, const Checkpoint& checkpoint) {
  return {.python = options.with,
          .folder = options.path,
          .runtime = asked_runtime(options),
          .kv_cache_dtype = options.kv_cache_dtype,
          .tensors = kv_scale_names(checkpoint),
          .time_limit_s = options.timeout_s};
}

}  // namespace

void verify_with(const VerifyOptions& options) {
  asked_runtime(options);
  Log log(options.verbosity);
  const SourceKind kind = source_kind(options.path);
  if (kind == SourceKind::missing) fail_system(options.path.string(), "open", ENOENT);
  if (kind != SourceKind::model_folder) {
    throw Error(cat(quote(options.path.string()), ": is no model folder that a runtime could load"),
                "leave out --with");
  }
  const Checkpoint checkpoint = Checkpoint::open(options.path);
  checkpoint.check_is_hugging_face();
  if (is_drafter(checkpoint.tensors())) {
    throw Error(cat(quote(options.path.string()),
                    ": is a drafter, which no runtime loads without its target"),
                "leave out --with: 'fp8kv verify' says what runtimes make of its scales");
  }
  const FoundScales found = scales_at(checkpoint);
  const LoadedScales loaded = load_with_python(request_of(options, checkpoint), log);
  const std::vector<ComparedScale> compared = compare_loaded(found.scales, loaded);
  options.json ? print(loaded_json(options, loaded, compared))
               : print_text(loaded_text(loaded, compared));
  const std::string runtime = cat(runtime_title(loaded.runtime), " ", loaded.version);
  if (!loaded.failure.empty()) {
    throw Error(cat(runtime, " does not load ", quote(options.path.string()), ": ", loaded.failure),
                "'fp8kv verify' without --with says what its versions take", ErrorKind::check);
  }
  const auto lost = std::count_if(compared.begin(), compared.end(),
                                  [](const ComparedScale& each) { return !arrived(each.how); });
  if (lost == 0) return;
  throw Error(cat("not every scale arrives: ", lost, " of ", compared.size(), " are not in ",
                  runtime, "'s memory as in the files"),
              "'fp8kv verify' without --with says what its versions take", ErrorKind::check);
}

}  // namespace fp8kv

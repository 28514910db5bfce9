#include "scales/rules/draft_rules.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/error.h"

namespace fp8kv {
namespace {

enum class Cache { any, heads, latent };

struct DraftRule {
  std::string_view runtime;
  RuntimeVersion since;
  std::string_view kind;  // "": any
  Cache cache;
  std::optional<ScaleSpelling> spelling;  // absent: any
  RuntimeOutcome outcome;
  const char* sentence;
  const char* source;
};

constexpr const char* kAtOne = "with the drafts on, an FP8 cache of theirs runs with 1";
constexpr const char* kTaken = "when it drafts: into the draft layer's own attention";
constexpr const char* kNoDrafts = "has no draft layers: it does not load them";
constexpr const char* kGlm =
    "run: vLLM 0.32's loader of drafts; 0.33, 0.24, 0.15: models/glm4_moe_mtp.py";
constexpr const char* kDeepSeek = "vllm 0.33: models/deepseek_mtp.py, glm4_moe_lite_mtp.py";
constexpr const char* kQwen = "run: vLLM 0.32's loader of drafts; 0.33: models/qwen3_5_mtp.py";
constexpr const char* kMimo = "vllm 0.33: models/mimo_mtp.py, ernie_mtp.py";

using Spelling = ScaleSpelling;
using Outcome = RuntimeOutcome;

// The first rule that holds decides, separately for each spelling of the layer's scales.
constexpr DraftRule kDraftRules[] = {
    {"vLLM", {0, 15}, "nextn", Cache::heads, Spelling::parameter, Outcome::loads, kTaken, kGlm},
    {"vLLM",
     {0, 15},
     "nextn",
     Cache::heads,
     {},
     Outcome::fails,
     "stops when it drafts: its loader of draft layers knows attn.k_scale and attn.v_scale alone",
     kGlm},
    {"vLLM",
     {0, 33},
     "nextn",
     Cache::latent,
     Spelling::projection,
     Outcome::loads,
     kTaken,
     kDeepSeek},
    {"vLLM", {0, 33}, "nextn", Cache::latent, {}, Outcome::ignores, kAtOne, kDeepSeek},
    {"vLLM", {0, 32}, "mtp", Cache::heads, Spelling::apart, Outcome::loads, kTaken, kQwen},
    {"vLLM", {0, 32}, "mtp", Cache::heads, Spelling::projection, Outcome::loads, kTaken, kQwen},
    {"vLLM", {0, 32}, "mtp", Cache::heads, Spelling::parameter, Outcome::loads, kTaken, kQwen},
    {"vLLM",
     {0, 33},
     "mtp_layers",
     Cache::heads,
     Spelling::parameter,
     Outcome::loads,
     kTaken,
     kMimo},
    {"vLLM",
     {0, 33},
     "mtp_block",
     Cache::heads,
     Spelling::parameter,
     Outcome::loads,
     kTaken,
     kMimo},
    {"SGLang",
     {0, 5, 23},
     "mtp",
     Cache::heads,
     Spelling::apart,
     Outcome::ignores,
     kAtOne,
     "sglang 0.5.23: srt/models/qwen3_5_mtp.py"},
    {"TGI", {}, "", Cache::any, {}, Outcome::ignores, kNoDrafts, "tgi: models/__init__.py"},
    {"transformers",
     {},
     "",
     Cache::any,
     {},
     Outcome::ignores,
     kNoDrafts,
     "transformers: _keys_to_ignore_on_load_unexpected"},
};

bool is_met(const DraftRule& rule, const DraftFacts& draft, ScaleSpelling spelling,
            const RuntimeColumn& column, RuntimeVersion version) {
  if (rule.runtime != column.runtime || version < rule.since) return false;
  if (!rule.kind.empty() && rule.kind != draft.layer.kind->name) return false;
  const bool fits = rule.cache == Cache::any || (rule.cache == Cache::latent) == draft.latent;
  return fits && (!rule.spelling || rule.spelling == spelling);
}

// A loader takes tensors one by one. A tensor that stops it decides, then one that it loads.
int weight(RuntimeOutcome outcome) {
  constexpr RuntimeOutcome kOrder[] = {Outcome::ignores, Outcome::unknown, Outcome::loads,
                                       Outcome::fails};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), outcome) - kOrder);
}

DraftVerdict verdict_of(const DraftFacts& draft, ScaleSpelling spelling,
                        const RuntimeColumn& column, RuntimeVersion version) {
  for (const DraftRule& rule : kDraftRules) {
    if (!is_met(rule, draft, spelling, column, version)) continue;
    return {rule.outcome, rule.sentence, rule.source};
  }
  return {Outcome::unknown, "what its loader of draft layers makes of scales was not looked at",
          ""};
}

// The column's newest version, or a version above all others if the column is open-ended.
RuntimeVersion newest_of(const RuntimeColumn& column) {
  const auto newest = parse_runtime_version(column.newest);
  return newest ? *newest : RuntimeVersion{std::numeric_limits<int>::max(), 0, 0};
}

}  // namespace

ScaleSpelling draft_spelling(bool latent) {
  return latent ? ScaleSpelling::projection : ScaleSpelling::parameter;
}

DraftVerdict draft_verdict(const DraftFacts& draft, const RuntimeColumn& column,
                           std::optional<RuntimeVersion> version) {
  const std::string_view runtime = column.runtime;
  const bool drafts = runtime != "TGI" && runtime != "transformers";
  if (draft.spellings.empty() && drafts) {
    return {RuntimeOutcome::ignores, cat("has no scales: ", kAtOne), ""};
  }
  const RuntimeVersion in = version ? *version : newest_of(column);
  DraftVerdict found;
  const std::vector<ScaleSpelling> spellings =
      draft.spellings.empty() ? std::vector{draft_spelling(draft.latent)} : draft.spellings;
  for (const ScaleSpelling spelling : spellings) {
    const DraftVerdict verdict = verdict_of(draft, spelling, column, in);
    const bool more = weight(verdict.outcome) > weight(found.outcome);
    if (found.sentence.empty() || more) found = verdict;
  }
  return found;
}

}  // namespace fp8kv

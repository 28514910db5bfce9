#include <algorithm>
#include <deque>
#include <map>

#include "backend/open.h"
#include "base/error.h"
#include "base/json.h"
#include "commands.h"
#include "io/architectures.h"
#include "io/find_scales.h"
#include "io/fingerprint.h"
#include "kv_dtype.h"
#include "model/generate.h"
#include "output.h"
#include "prompts.h"
#include "scale_source.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

// What the cache holds and the scales it holds it with.
struct CacheChoice {
  DType dtype = DType::f16;
  std::optional<KvScales> scales;  // in the format of dtype; absent: 1 everywhere
  std::string why;
};

constexpr const char* kWaysOut =
    "make some with 'fp8kv calibrate' and pass --scales FILE, or run with --unit-scales to have "
    "every scale 1";

// Scales given by hand or carried by the checkpoint; nullopt when there are none.
std::optional<KvScales> available_scales(const RunOptions& options, const Checkpoint& checkpoint,
                                         const ModelConfig& config, Log& log) {
  if (!options.scales.empty()) {
    KvScales scales = load_scales(options.scales, log);
    check_made_for(scales, checkpoint, config, quote(options.scales.string()));
    return scales;
  }
  std::optional<FoundScales> found = find_scales(checkpoint);
  if (!found) return std::nullopt;
  for (const std::string& note : found->notes) log.note("note: " + note);
  return std::move(found->scales);
}

CacheChoice choose_fp8(const RunOptions& options, DType dtype,
                       const std::optional<KvScales>& available, const std::string& model) {
  const Fp8Format format = *fp8_format(dtype);
  const std::string name = kv_dtype_name(dtype);
  if (fp8_spec(format).mantissa_bits == 2) {
    if (available) {
      throw Error(
          cat("--kv-cache-dtype ", name, ": ",
              options.scales.empty() ? cat("the scales that ", model, " carries")
                                     : cat("the scales of ", quote(options.scales.string())),
              " are for E4M3; an E5M2 cache runs without scales"),
          "use fp8_e4m3, or a checkpoint without scales", ErrorKind::usage);
    }
    return {dtype, std::nullopt, cat(name, ", which runs without scales")};
  }
  if (options.unit_scales) return {dtype, std::nullopt, cat(name, " with every scale 1")};
  if (!available) {
    throw Error(cat(model, ": no KV scales found, and an FP8 cache needs them"), kWaysOut);
  }
  return {dtype, with_format(*available, format),
          cat(name, " with the scales of ",
              options.scales.empty() ? model : quote(options.scales.string()))};
}

CacheChoice choose_cache(const RunOptions& options, const Checkpoint& checkpoint,
                         const ModelConfig& config, Log& log) {
  const std::optional<DType> asked = kv_dtype_from_name(options.kv_cache_dtype);
  const std::string model = quote(options.model.string());
  const bool scale_flags = !options.scales.empty() || options.unit_scales;
  if (asked && !fp8_format(*asked)) {
    if (scale_flags) {
      throw Error(
          cat("scales are for an FP8 cache, not for --kv-cache-dtype ", options.kv_cache_dtype),
          "leave out --scales and --unit-scales, or choose fp8", ErrorKind::usage);
    }
    return {*asked, std::nullopt, kv_dtype_name(*asked)};
  }
  std::optional<KvScales> available;
  if (!options.unit_scales) available = available_scales(options, checkpoint, config, log);
  if (asked) return choose_fp8(options, *asked, available, model);
  const std::string promised = checkpoint.config().get_string("kv_cache_torch_dtype", "");
  if (available || scale_flags) {
    const Fp8Format format = available ? available->format : Fp8Format::e4m3fn;
    return choose_fp8(options, dtype_of(format), available, model);
  }
  if (!promised.empty()) {
    throw Error(cat(quote(checkpoint.config_path().string()), ": kv_cache_torch_dtype is ",
                    quote(promised), ", but there are no KV scales in ", model),
                kWaysOut);
  }
  return {config.dtype, std::nullopt, cat(kv_dtype_name(config.dtype), ", the model's own dtype")};
}

// Turns events into text on stdout: the first unfinished prompt is shown as it is made, the others
// wait for their turn.
class Printer {
 public:
  Printer(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
          const std::vector<std::vector<int32_t>>& ids, bool json)
      : prompts_(prompts), ids_(ids), json_(json), answers_(prompts.size()) {
    for (const auto& prompt : ids) streams_.emplace_back(tokenizer, prompt, true);
    if (!json_) print(prompts_[0]);
  }

  void token(size_t prompt, int32_t id) {
    answers_[prompt].ids.push_back(id);
    show(prompt, streams_[prompt].add(id));
  }

  void finished(size_t prompt, FinishReason reason) {
    show(prompt, streams_[prompt].finish());
    answers_[prompt].reason = reason;
    while (turn_ < answers_.size() && answers_[turn_].reason) {
      if (json_) print(json_line(turn_));
      if (!json_) print("\n");
      ++turn_;
      if (json_ || turn_ == answers_.size()) continue;
      print("\n" + prompts_[turn_] + answers_[turn_].text);
    }
  }

 private:
  struct Answer {
    std::vector<int32_t> ids;
    std::string text;
    std::optional<FinishReason> reason;
  };

  void show(size_t prompt, const std::string& piece) {
    answers_[prompt].text += piece;
    if (!json_ && prompt == turn_ && !piece.empty()) print(piece);
  }

  std::string json_line(size_t index) const {
    const Answer& answer = answers_[index];
    JsonWriter json(JsonWriter::Layout::one_line);
    json.begin_object().member("schema", "fp8kv.run/1").member("index", uint64_t{index});
    json.member("prompt", prompts_[index]).member("text", answer.text);
    json.member("prompt_tokens", uint64_t{ids_[index].size()}).key("ids").begin_array();
    for (const int32_t id : answer.ids) json.value(int64_t{id});
    json.end_array().member("finish_reason", finish_reason_name(*answer.reason));
    return json.end_object().text() + "\n";
  }

  const std::vector<std::string>& prompts_;
  const std::vector<std::vector<int32_t>>& ids_;
  bool json_;
  std::deque<TokenStream> streams_;
  std::vector<Answer> answers_;
  size_t turn_ = 0;
};

std::string rate(uint64_t tokens, double seconds) {
  return cat(fixed(static_cast<double>(tokens) / std::max(seconds, 1e-9), 1), " tokens/s");
}

void report_figures(const GenerationStats& stats, size_t prompts, const KvCache& cache,
                    const ModelConfig& config, uint64_t pool_tokens, Log& log) {
  // The first token of each prompt comes from its prefill.
  const uint64_t decoded = stats.new_tokens - prompts;
  log.note(cat("first token after ", fixed(stats.first_token_seconds * 1000, 1), " ms; prompt ",
               count_of(stats.prompt_tokens, "token"), " at ",
               rate(stats.prompt_tokens, stats.prefill_seconds), "; decode ",
               count_of(decoded, "token"),
               decoded == 0 ? "" : " at " + rate(decoded, stats.decode_seconds)));
  const uint64_t here = kv_bytes_per_token(config, cache.dtype(), config.n_layers);
  const uint64_t half = kv_bytes_per_token(config, DType::f16, config.n_layers);
  log.note(cat("KV cache: ", grouped(here), " bytes a token; ", human_bytes(cache.bytes()),
               " hold ", count_of(pool_tokens, "token"),
               " (float16: ", grouped(cache.bytes() / half), ")"));
}

}  // namespace

void run_command(const RunOptions& options) {
  Log log(options.verbosity);
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const ModelConfig config = read_model_config(checkpoint);
  const CacheChoice choice = choose_cache(options, checkpoint, config, log);
  const Tokenizer tokenizer = Tokenizer::load(checkpoint.folder() / "tokenizer.json");
  const std::vector<std::string> prompts = read_prompts(options.prompts, options.prompt_file);
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& prompt : prompts) ids.push_back(tokenizer.encode(prompt, true));

  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why, "; cache in ", choice.why));
  const GenerationOptions generation{
      .max_new_tokens = options.max_new_tokens,
      .sampling = {options.temperature, options.top_k, options.top_p, options.seed},
      .stop_ids = config.eos_ids};
  const int64_t pages = pages_needed(ids, generation, config.max_seq_len);
  KvCache cache(*backend, config, {choice.dtype, config.n_layers, pages},
                choice.scales ? &*choice.scales : nullptr);
  Printer printer(tokenizer, prompts, ids, options.json);
  const GenerationStats stats =
      generate(checkpoint, config, *backend, cache, ids, generation,
               {[&](size_t prompt, int32_t id) { printer.token(prompt, id); },
                [&](size_t prompt, FinishReason reason) { printer.finished(prompt, reason); }});
  report_figures(stats, prompts.size(), cache, config, static_cast<uint64_t>(pages * kPageSize),
                 log);
}

}  // namespace fp8kv

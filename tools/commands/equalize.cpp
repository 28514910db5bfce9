#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/open/open.h"
#include "base/error.h"
#include "base/machine/cpu_topology.h"
#include "base/shell.h"
#include "calib/collect.h"
#include "calib/run_identity.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/model/read_model_config.h"
#include "commands/commands.h"
#include "data/dataset.h"
#include "data/files/find_data.h"
#include "equalize/cache_loss.h"
#include "equalize/equalized_caches.h"
#include "equalize/equalized_folder.h"
#include "equalize/find_exponents.h"
#include "equalize/fold_places.h"
#include "equalize/kept_exponents.h"
#include "equalize/logits_digest.h"
#include "files/output/finished_files.h"
#include "files/output/staged_directory.h"
#include "inputs/known_config.h"
#include "inputs/model_text.h"
#include "json/json.h"
#include "options/kept_inputs.h"
#include "options/output_files.h"
#include "show/made_files.h"
#include "show/output.h"

namespace fp8kv {
namespace {

// Windows for the search, and held-out windows to prove and measure the result.
struct EqualizeText {
  WindowIds search;  // the first part to search on, the rest to judge on
  size_t first_part = 0;
  WindowIds held_out;
};

struct Equalized {
  std::vector<LayerFactors> layers;
  EqualizedFiles files;
  std::vector<CacheLoss> before, after;
  uint64_t proven_tokens = 0;
};

EqualizeText read_equalize_text(const EqualizeOptions& options, const ModelText& text, Log& log) {
  EqualizeText made;
  made.search = windows_that_predict(text.read(options.data, log).ids);
  const size_t all = made.search.size();
  const size_t least = options.held_out.empty() ? 4 : 2;
  if (all < least) {
    throw Error(cat(names_of(options.data), ": has ", count_of(all, "window"), ", expected ", least,
                    " or more"),
                "pass more text, or a shorter --seq-len");
  }
  if (options.held_out.empty()) {
    const auto rest = made.search.begin() + static_cast<ptrdiff_t>(all - all / 4);
    made.held_out.assign(rest, made.search.end());
    made.search.erase(rest, made.search.end());
  } else {
    made.held_out = windows_that_predict(text.read(options.held_out, log).ids);
    if (made.held_out.empty()) {
      throw Error(cat(names_of(options.held_out), ": has no window of two tokens"),
                  "pass more text");
    }
    // Keeps as many as the last quarter of --data would give.
    made.held_out.resize(std::min(made.held_out.size(), std::max<size_t>(1, (all + 2) / 3)));
  }
  made.first_part = std::max<size_t>(1, made.search.size() * 2 / 3);
  return made;
}

void check_cache_fits(const ModelConfig& config, const EqualizedCache& cache) {
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    if (!config.writes_cache(i)) continue;
    const auto misfit = cache_misfit(config, i, CacheType(cache.format));
    if (!misfit) continue;
    const bool int8 = cache.format == KvFormat::int8_per_token_head;
    throw Error(cat("--for ", cache.name, ": ", misfit->found, ", expected ", misfit->expected),
                int8 ? "calibrate scales for an FP8 cache instead: it takes every layer"
                     : "equalise for int8, which takes more sizes of heads");
  }
}

// One run: searches exponents, writes the equalised folder, and compares it with the original.
class Equalizer {
 public:
  Equalizer(const EqualizeOptions& options, const Checkpoint& checkpoint, const ModelConfig& config,
            const EqualizeText& text, Log& log)
      : options_(options),
        checkpoint_(checkpoint),
        config_(config),
        text_(text),
        cache_(equalized_cache_at(options.cache)),
        threads_(options.threads > 0 ? options.threads : usable_cores()),
        log_(log) {
    auto [backend, why] = open_backend(options.device, options.threads);
    log.note(cat("computing on ", backend->describe(), why));
    backend_ = std::move(backend);
  }

  Equalized run() {
    if (!options_.resume || options_.dry_run) return equalize(nullptr);
    const KeptExponents kept(options_.out, identity(), log_);
    Equalized made;
    keeping(kept.files(), "the exponents of searched layers", [&] { made = equalize(&kept); });
    kept.remove(made.layers.size());
    return made;
  }

 private:
  Equalized equalize(const KeptExponents* kept) {
    Equalized made;
    KeySamples samples(*backend_, config_, text_.search,
                       {.search_windows = text_.first_part, .threads = threads_});
    magnitudes_ =
        collect_magnitudes({checkpoint_, config_, samples}, text_.search, log_, {.keys = &samples});
    made.layers =
        find_exponents(checkpoint_, config_, samples.layers(),
                       {.format = cache_.format, .threads = threads_, .kept = kept}, log_);
    if (options_.dry_run) return made;
    StagedDirectory staged(options_.out, options_.force);
    with_context(cat(quote(options_.out.string()), " was not made"), [&] {
      made.files =
          write_equalized(checkpoint_, config_, made.layers, record(made.layers), staged.path());
      prove(staged.path(), made);
    });
    checkpoint_.check_unchanged();
    staged.publish();
    return made;
  }

  // Everything that decides the exponents, as one text.
  std::string identity() const {
    JsonWriter json;
    json.begin_object().member("format", cache_.full).member("searched", text_.first_part);
    const RunIdentity run =
        run_identity(FP8KV_VERSION, checkpoint_, config_, text_.search, *backend_);
    for (const RunPart& part : run.parts) json.member(part.key, part.value);
    return json.end_object().text();
  }

  std::string record(std::span<const LayerFactors> layers) const {
    return record_text({.tool_version = FP8KV_VERSION,
                        .model = utf8_name(checkpoint_.folder().filename().string()),
                        .fingerprint = fingerprint_of(model_identity(checkpoint_, config_)),
                        .format = cache_.full},
                       layers);
  }

  // Throws unless both models give the same logits. Then measures the losses of their caches.
  void prove(const std::filesystem::path& folder, Equalized& made) {
    const Checkpoint equalized = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(equalized);
    const auto digest_of = [&](const Checkpoint& checkpoint, const ModelConfig& of) {
      return logits_digest({checkpoint, of, *backend_}, text_.held_out, threads_, log_);
    };
    if (digest_of(checkpoint_, config_) != digest_of(equalized, config)) {
      throw Error(cat("the logits of the equalised model differ from the original's on ",
                      tokens_in(text_.held_out), " tokens"),
                  "nothing was written; this is a defect of fp8kv, or values overflowed: please "
                  "report the model",
                  ErrorKind::check);
    }
    made.proven_tokens = tokens_in(text_.held_out);
    made.before = losses(checkpoint_, config_, magnitudes_);
    made.after = losses(equalized, config,
                        collect_magnitudes({equalized, config, *backend_}, text_.search, log_));
  }

  std::vector<CacheLoss> losses(const Checkpoint& checkpoint, const ModelConfig& config,
                                const std::vector<LayerMagnitudes>& magnitudes) {
    return cache_losses({checkpoint, config, *backend_}, text_.held_out, magnitudes,
                        {.format = cache_.format, .threads = options_.threads}, log_);
  }

  const EqualizeOptions& options_;
  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const EqualizeText& text_;
  const EqualizedCache& cache_;
  int threads_;
  Log& log_;
  std::unique_ptr<Backend> backend_;
  std::vector<LayerMagnitudes> magnitudes_;
};

std::string with_error(const CacheLoss& loss) {
  return cat(significant(loss.kld, 3), " ± ", significant(loss.error, 2));
}

std::string dtype_word(DType dtype) {
  return dtype == DType::f32 ? "F32" : "BF16";
}

std::string serve_line(const EqualizeOptions& options, const EqualizedCache& cache) {
  const std::string out = shell_path(options.out.string());
  if (cache.calibrated) return cat("fp8kv calibrate ", out, " --data FILE, then fp8kv inject");
  return cat("vllm serve ", out, " --kv-cache-dtype ", cache.full);
}

std::string equalize_text(const EqualizeOptions& options, const ModelConfig& config,
                          const Equalized& made) {
  const EqualizedCache& cache = equalized_cache_at(options.cache);
  const FactorCounts counts = count_factors(made.layers);
  std::string text = cat(counts.kept, " of ", counts.units, " heads equalised for ", cache.full,
                         ", exponents from ", counts.least, " to ", counts.most, "\n");
  if (options.dry_run) return text;
  text += cat("Logits: bit-equal in ", dtype_word(config.dtype), " on ", made.proven_tokens,
              " held-out tokens\n\n");
  Table table({"KLD of the cache", "before", "after"});
  for (size_t i = 0; i < made.before.size(); ++i) {
    table.add({made.before[i].cache, with_error(made.before[i]), with_error(made.after[i])});
  }
  return text + table.text() + cat("\nServe it with\n  ", serve_line(options, cache), "\n");
}

std::string equalize_json(const EqualizeOptions& options, const ModelConfig& config,
                          const Equalized& made) {
  const EqualizedCache& cache = equalized_cache_at(options.cache);
  const FactorCounts counts = count_factors(made.layers);
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.equalize/1");
  json.member("out", utf8_name(options.out.string())).member("for", cache.full);
  json.member("dry_run", options.dry_run).member("heads", counts.units);
  json.member("heads_equalised", counts.kept);
  json.member("least_exponent", int64_t{counts.least});
  json.member("most_exponent", int64_t{counts.most});
  if (!options.dry_run) {
    json.member("bit_equal_in", dtype_word(config.dtype));
    json.member("bit_equal_tokens", made.proven_tokens).key("kld").begin_array();
    for (size_t i = 0; i < made.before.size(); ++i) {
      json.begin_object().member("cache", made.before[i].cache);
      json.member("before", made.before[i].kld).member("before_error", made.before[i].error);
      json.member("after", made.after[i].kld).member("after_error", made.after[i].error);
      json.end_object();
    }
    json.end_array();
    made_files_json(json, made.files.files);
    json.member("skipped", std::span<const std::string>(made.files.skipped));
    json.member("serve", utf8_name(serve_line(options, cache)));
  }
  return json.end_object().text();
}

void check_equalize_outputs(const EqualizeOptions& options, Log& log) {
  if (options.out == "-") {
    throw Error("--out: '-' is no folder", "name a folder to make", ErrorKind::usage);
  }
  std::vector<InputPath> inputs = {{"MODEL", options.model}};
  add_inputs(inputs, "--data", options.data);
  add_inputs(inputs, "--held-out", options.held_out);
  const OutputFile out = {.flag = "--out", .path = options.out, .is_folder = true};
  check_inputs_kept(inputs, {out});
  const OutputFile kept = {.flag = "--resume",
                           .path = FinishedFiles::path_for(options.out),
                           .is_folder = true,
                           .own = true};
  if (options.resume) check_inputs_kept(inputs, {kept});
  if (!options.dry_run) report_leftovers({out, kept}, log);
}

}  // namespace

void run_command(const EqualizeOptions& given) {
  Log log(given.verbosity);
  EqualizeOptions options = given;
  options.data = find_data(given.data, given.choice.split, log);
  options.held_out = find_data(given.held_out, given.choice.split, log);
  check_equalize_outputs(options, log);
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const ModelConfig config = read_known_config(checkpoint, options.strict, log);
  check_foldable(checkpoint, config);
  check_cache_fits(config, equalized_cache_at(options.cache));
  with_way_out(kReplaceOutput, [&] { check_equalizable(checkpoint, options.out, options.force); });
  const ModelText reader(checkpoint, config, {options.windows, options.choice, options.chat}, log);
  const EqualizeText text = read_equalize_text(options, reader, log);
  const Equalized made = with_way_out(
      kReplaceOutput, [&] { return Equalizer(options, checkpoint, config, text, log).run(); });
  for (const std::string& line : made.files.skipped) log.note("left behind: " + line);
  if (!options.dry_run) {
    log.note(cat("wrote ", human_bytes(made.files.written_bytes), " and made ",
                 quote(options.out.string())));
  }
  options.json ? print(equalize_json(options, config, made))
               : print_text(equalize_text(options, config, made));
}

}  // namespace fp8kv

#include "backend/open.h"
#include "base/error.h"
#include "base/json.h"
#include "calib/collect.h"
#include "calib/histogram_file.h"
#include "calib/scale_policy.h"
#include "commands.h"
#include "io/architectures.h"
#include "io/checkpoint.h"
#include "io/dataset.h"
#include "io/fingerprint.h"
#include "io/scale_file.h"
#include "output.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

// Refuses before the work what would be refused after it.
void check_output(const std::filesystem::path& path, bool force) {
  if (path.empty() || path == "-" || force || !std::filesystem::exists(path)) return;
  throw Error(cat(quote(path.string()), ": already exists"),
              "choose another output, or pass --force to replace it");
}

int64_t window_length(const CalibrateOptions& options, const ModelConfig& config, Log& log) {
  if (options.seq_len <= config.max_seq_len) return options.seq_len;
  if (options.seq_len_given) {
    throw Error(cat("--seq-len ", options.seq_len, " is longer than the model's context, ",
                    config.max_seq_len, " (max_position_embeddings)"),
                cat("--seq-len ", config.max_seq_len, " is the longest"), ErrorKind::usage);
  }
  log.note(cat("windows of ", config.max_seq_len, " tokens: the model's whole context"));
  return config.max_seq_len;
}

TextEncoder make_encoder(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::filesystem::path file = checkpoint.folder() / "tokenizer.json";
  const auto vocab_size = static_cast<int32_t>(config.vocab_size);
  if (!std::filesystem::exists(file)) {
    // Data that is tokenized already needs no tokenizer.
    const auto refuse = [file](std::string_view) -> std::vector<int32_t> {
      throw Error(cat(quote(file.string()), ": no such file"),
                  "text needs the model's tokenizer.json; records with input_ids do not");
    };
    return {refuse, {}, vocab_size};
  }
  const auto tokenizer = std::make_shared<Tokenizer>(Tokenizer::load(file));
  return {[tokenizer](std::string_view text) { return tokenizer->encode(text, false); },
          tokenizer->prefix(), vocab_size};
}

std::string table_of(const KvScales& scales) {
  Table table({"layer", "K amax", "K scale", "V amax", "V scale", "Q amax"}, {false});
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    const LayerAmax& amax = scales.provenance.amax[i];
    const auto largest = [](const std::vector<float>& of) {
      return significant(*std::max_element(of.begin(), of.end()));
    };
    table.add({cat(i), largest(amax.k), largest(scales.layers[i].k), largest(amax.v),
               largest(scales.layers[i].v), largest(amax.q)});
  }
  return table.text();
}

std::string summary_json(const CalibrateOptions& options, const KvScales& scales) {
  const Provenance& provenance = scales.provenance;
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.calibrate/1").member("out", options.out.string());
  json.member("documents", provenance.documents).member("windows", provenance.windows);
  json.member("tokens", provenance.tokens).member("headroom", provenance.headroom);
  json.key("layers").begin_array();
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    json.begin_object().member("layer", static_cast<uint64_t>(i));
    json.member("k_scale", std::span<const float>(scales.layers[i].k));
    json.member("v_scale", std::span<const float>(scales.layers[i].v));
    json.member("k_amax", std::span<const float>(provenance.amax[i].k));
    json.member("v_amax", std::span<const float>(provenance.amax[i].v));
    json.member("q_amax", std::span<const float>(provenance.amax[i].q)).end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace

void run_command(const CalibrateOptions& options) {
  Log log(options.verbosity);
  check_output(options.out, options.force);
  check_output(options.histograms, options.force);
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const ModelConfig config = read_model_config(checkpoint);
  const WindowOptions window_options{.max_windows = options.samples,
                                     .exact = options.samples_given,
                                     .seq_len = window_length(options, config, log)};
  const Windows windows =
      read_windows(options.data, make_encoder(checkpoint, config), window_options, log);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why));

  const std::vector<LayerMagnitudes> magnitudes =
      collect_magnitudes(checkpoint, config, *backend, windows.ids, log);
  KvScales scales = make_scales(magnitudes, options.policy, log);
  scales.model_type = config.model_type;
  scales.n_kv_heads = config.n_kv_heads;
  Provenance& provenance = scales.provenance;
  provenance.source = "fp8kv calibrate";
  provenance.tool_version = FP8KV_VERSION;
  provenance.observation = "post_rope";
  provenance.model_fingerprint = model_fingerprint(checkpoint, config);
  provenance.compute_dtype = torch_name(config.dtype);
  provenance.documents = windows.documents;
  provenance.windows = windows.ids.size();
  provenance.tokens = windows.tokens;
  provenance.data = windows.files;

  if (!options.histograms.empty()) {
    write_file_atomically(options.histograms, histogram_file_bytes(magnitudes), options.force);
  }
  write_file_atomically(options.out, scale_file_text(scales), options.force);
  if (options.out == "-") return;
  log.note(cat("wrote ", quote(options.out.string()), ": scales of ",
               count_of(scales.layers.size(), "layer"), " from ",
               count_of(provenance.tokens, "token"), " in ",
               count_of(provenance.windows, "window")));
  print(options.json ? summary_json(options, scales) : table_of(scales));
}

}  // namespace fp8kv

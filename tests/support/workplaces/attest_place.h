// A test server that computes with the demo model in any cache. It answers like one of the runtimes
// that `attest` knows.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attest/hypotheses.h"
#include "attest/predictor.h"
#include "backend/cpu/cpu_backend.h"
#include "base/text.h"
#include "checkpoint/model/read_model_config.h"
#include "json/json.h"
#include "scales/scale_file.h"
#include "support/hub_server.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv::test {

inline std::filesystem::path demo_model() {
  return source_dir() / "datasets/demo";
}

// The demo model with one cache.
class DemoServer {
 public:
  explicit DemoServer(Hypothesis cache)
      : cache_(std::move(cache)),
        checkpoint_(Checkpoint::open(demo_model())),
        config_(read_model_config(checkpoint_)),
        backend_(make_cpu_backend(1)),
        predictor_(checkpoint_, config_, *backend_, 1) {}

  // Log probabilities of all tokens but the first, with noise of about 0.002 that depends on the
  // text.
  std::vector<double> log_probs(const std::vector<int32_t>& ids) {
    const std::lock_guard lock(mutex_);
    Log log(Verbosity::quiet);
    Progress progress(log, "", 1);
    const Lane lane{cache_.cache, cache_.scales ? &*cache_.scales : nullptr};
    std::vector<double> found = predictor_.log_probs({ids}, {lane}, progress)[0];
    uint32_t state = 1;
    for (size_t i = 0; i < found.size(); ++i) {
      state = state * 1664525u + 1013904223u + static_cast<uint32_t>(ids[i + 1]);
      const double noise = static_cast<double>(state >> 8) / (1 << 24) - 0.5;
      found[i] = std::min(0.0, found[i] + 0.008 * noise);
    }
    return found;
  }
  const Tokenizer& tokenizer() {
    if (!tokenizer_) tokenizer_ = Tokenizer::find_in(demo_model());
    return *tokenizer_;
  }

 private:
  Hypothesis cache_;
  Checkpoint checkpoint_;
  ModelConfig config_;
  std::unique_ptr<Backend> backend_;
  Predictor predictor_;
  std::optional<Tokenizer> tokenizer_;
  std::mutex mutex_;
};

// The answers of one runtime that serves the demo model.
class DemoRuntime {
 public:
  // `api`: a name of server_protocols(). `cache`: the cache that the server uses.
  DemoRuntime(std::string api, Hypothesis cache) : api_(std::move(api)), model_(std::move(cache)) {}

  HubAnswer answer(const HubAsk& ask) {
    if (ask.body.empty()) return about(ask.target);
    const Json question = Json::parse(ask.body, "question");
    if (api_ == "vllm" && ask.target == "/v1/completions") return json(vllm(question));
    if (ask.target != "/generate") return {404, {}, "{\"detail\": \"Not Found\"}"};
    return json(api_ == "sglang" ? sglang(question) : tgi(question));
  }

 private:
  static HubAnswer json(std::string body) { return {200, {}, std::move(body)}; }

  HubAnswer about(const std::string& target) const {
    const std::string list = "{\"data\": [{\"id\": \"demo\", \"max_model_len\": 512}]}";
    if (target == "/v1/models") return json(list);
    if (api_ == "vllm" && target == "/version") return json("{\"version\": \"0.32.0\"}");
    if (api_ == "sglang" && target == "/get_model_info") {
      return json("{\"model_path\": \"demo\", \"is_generation\": true}");
    }
    if (api_ == "tgi" && target == "/info") {
      return json("{\"model_id\": \"demo\", \"max_input_tokens\": 511, \"version\": \"3.3.6\"}");
    }
    return {404, {}, "{\"detail\": \"Not Found\"}"};
  }

  // The prompt and the generated tokens. Any tokens will do, they need not be greedy.
  struct Asked {
    std::vector<int32_t> ids;
    size_t first = 1;               // the first token in the answer
    std::vector<double> log_probs;  // of all tokens but the first
  };
  Asked asked(std::vector<int32_t> prompt, int64_t new_tokens) {
    Asked all{std::move(prompt), 1, {}};
    const size_t n = all.ids.size();
    if (new_tokens > 1) all.first = n;
    for (int64_t i = 0; new_tokens > 1 && i < new_tokens; ++i) {
      all.ids.push_back(all.ids[static_cast<size_t>(i * 7) % n]);
    }
    all.log_probs = model_.log_probs(all.ids);
    return all;
  }
  static std::vector<int32_t> ids_in(const Json& list) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < list.size(); ++i) ids.push_back(static_cast<int32_t>(list[i].as_int()));
    return ids;
  }

  std::string vllm(const Json& question) {
    const Asked all = asked(ids_in(question.at("prompt")), question.get_int("max_tokens", 0));
    JsonWriter out;
    out.begin_object().key("choices").begin_array().begin_object();
    if (all.first == 1) {
      out.key("prompt_logprobs").begin_array().null();
      for (size_t i = 1; i < all.ids.size(); ++i) {
        out.begin_object().key("0").begin_object().member("logprob", -9.5).end_object();
        if (all.ids[i] != 0) out.key(cat(all.ids[i])).begin_object();
        if (all.ids[i] != 0) out.member("logprob", all.log_probs[i - 1]).end_object();
        out.end_object();
      }
      out.end_array();
    } else {
      out.key("logprobs").begin_object().key("tokens").begin_array();
      for (size_t i = all.first; i < all.ids.size(); ++i) out.value(cat("token_id:", all.ids[i]));
      out.end_array().key("token_logprobs").begin_array();
      for (size_t i = all.first; i < all.ids.size(); ++i) out.value(all.log_probs[i - 1]);
      out.end_array().end_object();
    }
    return out.end_object().end_array().end_object().text();
  }

  std::string sglang(const Json& question) {
    const int64_t new_tokens = question.at("sampling_params").get_int("max_new_tokens", 0);
    const Asked all = asked(ids_in(question.at("input_ids")), new_tokens);
    JsonWriter out;
    out.begin_object().key("meta_info").begin_object();
    out.key(all.first == 1 ? "input_token_logprobs" : "output_token_logprobs").begin_array();
    for (size_t i = all.first == 1 ? 0 : all.first; i < all.ids.size(); ++i) {
      out.begin_array();
      i == 0 ? out.null() : out.value(all.log_probs[i - 1]);
      out.value(int64_t{all.ids[i]}).null().end_array();
    }
    return out.end_array().end_object().end_object().text();
  }

  std::string tgi(const Json& question) {
    const int64_t new_tokens = question.at("parameters").get_int("max_new_tokens", 0);
    const std::string& text = question.at("inputs").as_string();
    const Asked all = asked(model_.tokenizer().encode(text, true), new_tokens);
    JsonWriter out;
    out.begin_object().key("details").begin_object();
    out.key(all.first == 1 ? "prefill" : "tokens").begin_array();
    for (size_t i = all.first == 1 ? 0 : all.first; i < all.ids.size(); ++i) {
      out.begin_object().member("id", int64_t{all.ids[i]}).key("logprob");
      i == 0 ? out.null() : out.value(all.log_probs[i - 1]);
      out.end_object();
    }
    return out.end_array().end_object().end_object().text();
  }

  std::string api_;
  DemoServer model_;
};

// A runtime with a cache, the expected scales, and the program that asks the runtime.
class AttestPlace {
 public:
  using Change = std::function<std::optional<HubAnswer>(const HubAsk&)>;

  // `cache`: the name of a hypothesis. `change` may replace an answer of the runtime.
  AttestPlace(const std::string& api, const std::string& cache, Change change = {})
      : runtime_(api, hypothesis(cache)), server(temp.path(), [this, change](const HubAsk& ask) {
          std::optional<HubAnswer> other = change ? change(ask) : std::nullopt;
          return other ? other : std::optional(runtime_.answer(ask));
        }) {}

  CliResult run(const std::vector<std::string>& more, const std::string& key = "") const {
    std::vector<std::string> all = {
        "attest",   server.endpoint(),
        "--model",  demo_model().string(),
        "--scales", "s.json",
        "--data",   (source_dir() / "datasets/calibration.txt").string()};
    all.insert(all.end(), more.begin(), more.end());
    return run_cli(all, CliSetup{.folder = temp.path(),
                                 .environment = {"http_proxy=", "all_proxy=", "KEY=" + key}});
  }
  // Replaces the server's address, which differs in each run, by "SERVER".
  std::string named(std::string text) const {
    for (size_t at = 0; (at = text.find(server.endpoint(), at)) != text.npos;) {
      text.replace(at, server.endpoint().size(), "SERVER");
    }
    return text;
  }

 private:
  // Scales close to those of policy amax.
  static KvScales demo_scales() {
    const Checkpoint checkpoint = Checkpoint::open(demo_model());
    const ModelConfig config = read_model_config(checkpoint);
    KvScales scales;
    scales.n_kv_heads = config.n_kv_heads();
    for (int64_t i = 0; i < config.n_layers(); ++i) {
      const float step = 1.0f + 0.1f * static_cast<float>(i);
      scales.layers.push_back({{0.0371f * step}, {0.00613f * step}});
    }
    return scales;
  }
  Hypothesis hypothesis(const std::string& name) {
    const KvScales scales = demo_scales();
    temp.write("s.json", scale_file_text(scales));
    const Checkpoint checkpoint = Checkpoint::open(demo_model());
    const ModelConfig config = read_model_config(checkpoint);
    std::vector<Hypothesis> all = main_hypotheses(config, scales, {});
    for (size_t i = all.size(); i-- > 0;) {
      if (all[i].outcome != Outcome::these_scales) continue;
      for (Hypothesis& each : missing_layers(all[i])) all.push_back(std::move(each));
    }
    for (Hypothesis& each : all) {
      if (each.name == name) return each;
    }
    fail("no hypothesis is named ", name);
  }

 public:
  TempDir temp;

 private:
  DemoRuntime runtime_;

 public:
  HubServer server;
};

}  // namespace fp8kv::test

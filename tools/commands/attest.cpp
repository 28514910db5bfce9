#include "attest/attest.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "attest/predictor.h"
#include "attest/server.h"
#include "backend/open/open.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "commands/commands.h"
#include "data/files/find_data.h"
#include "inputs/known_config.h"
#include "inputs/model_text.h"
#include "inputs/scale_source.h"
#include "show/attest/attest_json.h"
#include "show/attest/attest_text.h"
#include "show/output.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

// One window in the form that the server is asked about.
struct QuestionText {
  std::vector<int32_t> ids;
  std::string text;  // for servers that take no ids
};

std::string key_in(const std::string& variable) {
  if (variable.empty()) return "";
  const char* value = std::getenv(variable.c_str());
  const std::string key = value ? value : "";
  const bool plain =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (key.empty() || !plain) {
    throw Error(cat("--api-key-env ", quote(variable), ": the variable ",
                    key.empty() ? "is not set" : "holds what no key has"),
                "export the key in it, or leave out --api-key-env", ErrorKind::usage);
  }
  return key;
}

std::optional<KvScales> expected_scales(const AttestCommandOptions& options,
                                        const Checkpoint& checkpoint, const ModelConfig& config,
                                        Log& log) {
  if (options.scales.empty()) return scales_carried_by(checkpoint, config, log);
  return load_scales_for(options.scales, options.accept_foreign, checkpoint, config, log);
}

// The questions for all windows. For servers that take no ids each window becomes text, with the
// ids that tokenizing this text gives.
std::vector<QuestionText> questions(const Windows& windows, bool as_text,
                                    const Checkpoint& checkpoint) {
  std::optional<Tokenizer> tokenizer;
  if (as_text) {
    tokenizer = Tokenizer::find_in(checkpoint.folder());
    if (!tokenizer) {
      throw Error(cat(quote(checkpoint.folder().string()), ": has no ", Tokenizer::kFiles),
                  "this server takes text, not ids");
    }
  }
  std::vector<QuestionText> found;
  for (const auto& window : windows.ids) {
    if (window.size() < 2) continue;
    QuestionText& each = found.emplace_back(QuestionText{window, ""});
    if (!tokenizer) continue;
    const size_t prefix = tokenizer->prefix().size();
    const bool begins =
        window.size() > prefix &&
        std::equal(tokenizer->prefix().begin(), tokenizer->prefix().end(), window.begin());
    each.text = tokenizer->decode(std::span(window).subspan(begins ? prefix : 0), false);
    each.ids = tokenizer->encode(each.text, true);
  }
  return found;
}

void check_length(const AttestCommandOptions& options, const AttestServer& server,
                  const std::vector<QuestionText>& texts) {
  if (!server.max_tokens()) return;
  for (const QuestionText& each : texts) {
    const int64_t tokens =
        static_cast<int64_t>(each.ids.size()) + std::max<int64_t>(1, options.decode);
    if (tokens <= *server.max_tokens()) continue;
    throw Error(cat(quote(server.address()), ": takes ", *server.max_tokens(),
                    " tokens, prompt and answer, and a window needs ", tokens),
                cat("use --seq-len ", *server.max_tokens() - std::max<int64_t>(1, options.decode)),
                ErrorKind::usage);
  }
}

AskedWindow ask_server(AttestServer& server, const QuestionText& text, int64_t decode) {
  if (decode == 0) return {text.ids, server.prompt_log_probs(text.ids, text.text)};
  const ServerAnswer answer = server.generate(text.ids, text.text, decode);
  AskedWindow asked{text.ids, answer.log_probs};
  asked.ids.insert(asked.ids.end(), answer.ids.begin(), answer.ids.end());
  return asked;
}

// Throws with exit code 1 if the server uses another cache than expected, and with 4 if several
// caches still fit.
void throw_unless_expected(const AttestReport& report, const AttestedServer& server,
                           bool with_scales) {
  const Outcome expected = with_scales ? Outcome::these_scales : Outcome::unit_scales;
  if (report.verdict == AttestVerdict::undecided) {
    throw Error(attest_answer(report, server),
                "give more text with --samples, or another --data: these cannot be told apart on "
                "this one",
                ErrorKind::undecided);
  }
  const Outcome found = report.hypotheses[report.best].outcome;
  if (report.verdict == AttestVerdict::fits && found == expected) return;
  throw Error(attest_answer(report, server), "", ErrorKind::check);
}

}  // namespace

void run_command(const AttestCommandOptions& given) {
  Log log(given.verbosity);
  AttestCommandOptions options = given;
  options.data = find_data(given.data, given.choice.split, log);
  AttestServer server(options.url,
                      {options.api, key_in(options.api_key_env), options.served_model,
                       static_cast<int>(options.timeout_s)},
                      log);
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const ModelConfig config = read_known_config(checkpoint, options.strict, log);
  const std::optional<KvScales> scales = expected_scales(options, checkpoint, config, log);
  const ModelText reader(checkpoint, config, {options.windows, options.choice, options.chat}, log);
  const Windows windows = reader.read(options.data, log);
  server.connect();
  const std::vector<QuestionText> texts =
      questions(windows, server.protocol().takes_text, checkpoint);
  check_length(options, server, texts);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why));
  Predictor predictor(checkpoint, config, *backend, options.threads);
  const bool on_cpu = backend->describe().starts_with("cpu");
  AttestSides sides;
  sides.ask = [&](size_t i) { return ask_server(server, texts[i], options.decode); };
  sides.predict = [&](const TokenWindows& ids, const std::vector<Lane>& lanes) {
    Progress progress(log, "computing here", predictor.steps(ids));
    return predictor.log_probs(ids, lanes, progress);
  };
  const AttestReport report = attest(
      main_hypotheses(config, scales, {.toward_zero = on_cpu, .fp8_attention = on_cpu}), sides,
      {.level = options.level, .windows = texts.size(), .layers = scales.has_value()});
  log.end_progress();
  const AttestedServer about{server.address(), server.protocol().runtime, server.version(),
                             server.model(),   options.decode > 0,        options.level};
  options.json ? print(attest_json(report, about)) : print_text(attest_text(report, about));
  throw_unless_expected(report, about, scales.has_value());
}

}  // namespace fp8kv

#include "inputs/prompts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unistd.h>

#include "base/error.h"
#include "data/records.h"
#include "files/file.h"

namespace fp8kv {
namespace {

constexpr uint64_t kMaxPromptFile = uint64_t(1) << 30;
constexpr const char* kStdin = "standard input";
const std::array<std::string, 4> kTexts = {"prompt", "text", "messages", "input_ids"};
const std::array<std::string, 5> kOptions = {"max_tokens", "temperature", "top_k", "top_p", "seed"};

// The one key of kTexts that a record has.
std::string text_key(const Json& record) {
  std::vector<std::string> found;
  for (const std::string& key : kTexts) {
    if (record.has(key)) found.push_back(quote(key));
  }
  if (found.size() == 1) return found[0].substr(1, found[0].size() - 2);
  if (found.empty()) {
    throw Error(cat(record.where(), ": has none of ", join(kTexts, " and ")),
                R"(write one record a line: {"prompt": "..."})");
  }
  throw Error(cat(record.where(), ": has ", join(found), ", of which only one may be there"),
              "remove or rename the others");
}

// Other keys may be there and mean nothing, unless they look like an option that was meant.
void refuse_misspelled(const Json& record) {
  for (size_t i = 0; i < record.size(); ++i) {
    const std::string& key = record.key(i);
    if (std::ranges::find(kOptions, key) != kOptions.end()) continue;
    const std::string meant = nearest(key, kOptions);
    if (meant.empty()) continue;
    throw Error(cat(record.where(), ": has no option ", quote(key), ", only ", quote(meant)),
                "options of a record are " + join(kOptions));
  }
}

int64_t integer_of(const Json& record, const std::string& key, int64_t least, int64_t most,
                   int64_t otherwise) {
  const std::optional<Json> value = record.find(key);
  if (!value) return otherwise;
  const int64_t number = value->as_int();
  if (number < least || number > most) {
    fail(value->where(), ": is ", number, ", expected an integer from ", least, " to ", most);
  }
  return number;
}

float float_of(const Json& record, const std::string& key, float otherwise) {
  const std::optional<Json> value = record.find(key);
  return value ? static_cast<float>(value->as_double()) : otherwise;
}

std::vector<int32_t> ids_of(const Json& array, int64_t vocab_size) {
  if (!array.is_array()) fail(array.where(), ": is ", array.brief(), ", expected an array");
  std::vector<int32_t> ids;
  for (size_t i = 0; i < array.size(); ++i) {
    const int64_t id = array[i].as_int();
    if (id < 0 || id >= vocab_size) {
      fail(array[i].where(), ": is ", id, ", expected a token id from 0 to ", vocab_size - 1);
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace

Prompts::Prompts(const RunOptions& options, const Tokenizer& tokenizer, const ModelConfig& config)
    : options_(options), tokenizer_(tokenizer), config_(config) {
  for (size_t i = 0; i < options.prompts.size(); ++i) {
    const std::string name = cat("--prompt ", i + 1);
    size_t bad = 0;
    if (!is_utf8(options.prompts[i], &bad)) fail(name, ": is not valid UTF-8 at byte ", bad);
    known_.push_back(finished(from_text(options.prompts[i], name)));
  }
  if (!known_.empty()) return;
  if (options.prompt_file.empty()) {
    throw Error("no prompt given", "pass --prompt TEXT, --prompts FILE, or - for standard input",
                ErrorKind::usage);
  }
  if (options.prompt_file == "-") {
    input_.emplace(STDIN_FILENO);
    return;
  }
  const std::string label = quote(options.prompt_file.string());
  const std::string text = read_text(options.prompt_file, kMaxPromptFile);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    auto prompt = from_line(std::string_view(text).substr(at, end - at), label);
    if (prompt) known_.push_back(*std::move(prompt));
    at = end + 1;
  }
  if (known_.empty()) throw Error(cat(label, ": has no prompts"), "write one JSON record a line");
}

std::vector<Request> Prompts::requests() const {
  std::vector<Request> requests;
  for (const Prompt& prompt : known_) requests.push_back(prompt.request);
  return requests;
}

Prompt Prompts::from_text(const std::string& text, const std::string& name) const {
  Prompt prompt{name, text, std::nullopt, {}};
  prompt.request.prompt = tokenizer_.encode(text, true);
  prompt.request.max_new_tokens = options_.max_new_tokens;
  prompt.request.sampling = {options_.temperature, options_.top_k, options_.top_p, 0};
  return prompt;
}

Prompt Prompts::from_record(const Json& record) const {
  if (!record.is_object()) {
    fail(record.where(), ": is ", record.brief(), ", expected an object");
  }
  refuse_misspelled(record);
  const std::string key = text_key(record);
  Prompt prompt;
  if (key == "input_ids") {
    prompt = from_text("", record.where());
    prompt.request.prompt = ids_of(record.at(key), config_.vocab_size);
    prompt.text = tokenizer_.decode(prompt.request.prompt, false);
  } else if (key == "messages") {
    // Chat templates are programs; this is how calibration reads a chat, up to where it goes on.
    prompt = from_text(read_record(record).text + "\nassistant:", record.where());
  } else {
    prompt = from_text(record.at(key).as_string(), record.where());
  }
  prompt.id = record.find("id");
  if (prompt.id && !prompt.id->is_string() && !prompt.id->is_number()) {
    fail(prompt.id->where(), ": is ", prompt.id->brief(), ", expected a string or a number");
  }
  Request& request = prompt.request;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  request.max_new_tokens = integer_of(record, "max_tokens", 1, kMost, request.max_new_tokens);
  SamplingOptions& sampling = request.sampling;
  sampling.temperature = float_of(record, "temperature", sampling.temperature);
  sampling.top_k = static_cast<int32_t>(integer_of(record, "top_k", 0, kMost, sampling.top_k));
  sampling.top_p = float_of(record, "top_p", sampling.top_p);
  with_context(record.where(), [&] { check_sampling(sampling); });
  return prompt;
}

std::optional<Prompt> Prompts::from_line(std::string_view line, const std::string& label) {
  ++line_;
  if (line.find_first_not_of(" \t\r") == line.npos) return std::nullopt;
  const Json record = Json::parse_line(line, line_, label);
  Prompt prompt = finished(from_record(record));
  // With a seed of its own a prompt gets the same wherever it stands.
  if (record.has("seed")) {
    const int64_t seed = integer_of(record, "seed", 0, std::numeric_limits<int64_t>::max(), 0);
    prompt.request.sampling.seed = sequence_seed(static_cast<uint64_t>(seed), 0);
  }
  return prompt;
}

// Checks it and numbers it.
Prompt Prompts::finished(Prompt prompt) {
  check_request(prompt.request, prompt.name, config_);
  check_pages(prompt.request, prompt.name, config_, pages_);
  prompt.request.sampling.seed = sequence_seed(options_.seed, count_++);
  return prompt;
}

std::optional<Prompt> Prompts::read_one(bool wait) {
  while (const std::optional<std::string> line = input_->next(wait)) {
    if (auto prompt = from_line(*line, kStdin)) return prompt;
  }
  if (wait && count_ == 0) {
    throw Error(cat(kStdin, ": has no prompts"), "write one JSON record a line");
  }
  return std::nullopt;
}

std::optional<Prompt> Prompts::next(bool wait) {
  if (!known_.empty()) {
    Prompt prompt = std::move(known_.front());
    known_.pop_front();
    return prompt;
  }
  if (!input_ || failure_) return std::nullopt;
  try {
    return read_one(wait);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    failure_ = std::current_exception();
    return std::nullopt;
  }
}

void Prompts::fail_late() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace fp8kv

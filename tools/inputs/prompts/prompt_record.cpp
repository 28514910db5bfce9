#include "inputs/prompts/prompt_record.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "options/options.h"

namespace fp8kv {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
const std::array<std::string, 5> kTexts = {"prompt", "text", "messages", "conversations",
                                           "input_ids"};
// Keys that are passed to chat templates beside the messages.
const std::array<std::string, 2> kOfChats = {"tools", "chat_template_kwargs"};
const std::array<std::string, 9> kOptions = {"max_tokens", "temperature",    "top_k",
                                             "top_p",      "seed",           "n",
                                             "stop",       "stop_token_ids", "logprobs"};
const std::string kContinuations = "continuations";

// Other tools' names for our keys.
struct OtherName {
  std::string_view name;
  const char* ours;
};

constexpr OtherName kOtherNames[] = {
    {"max_completion_tokens", "max_tokens"},
    {"max_length", "max_tokens"},
    {"max_new_tokens", "max_tokens"},
    {"n_predict", "max_tokens"},
    {"num_return_sequences", "n"},
    {"stop_sequences", "stop"},
    {"stop_strings", "stop"},
    {"eos_token_id", "stop_token_ids"},
    {"top_logprobs", "logprobs"},
    {"n_probs", "logprobs"},
    {"choices", "continuations"},
};

// The one key of kTexts in the record.
std::string text_key(const Json& record) {
  std::vector<std::string> found;
  for (const std::string& key : kTexts) {
    if (record.has(key)) found.push_back(key);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    throw Error(cat(record.where(), ": has none of ", join(kTexts, " and ")),
                R"(write one record a line: {"prompt": "..."})");
  }
  for (std::string& key : found) key = quote(key);
  throw Error(cat(record.where(), ": has ", join(found), ", of which only one may be there"),
              "remove or rename the others");
}

std::string meant(const std::string& key) {
  for (const OtherName& row : kOtherNames) {
    if (row.name == key) return row.ours;
  }
  std::vector<std::string> ours(kOptions.begin(), kOptions.end());
  ours.push_back(kContinuations);
  return nearest(key, ours);
}

// Throws for unknown keys, because an option that is silently ignored would mislead.
void check_keys(const Json& record) {
  for (size_t i = 0; i < record.size(); ++i) {
    const std::string& key = record.key(i);
    const bool known = key == "id" || key == kContinuations ||
                       std::ranges::find(kOfChats, key) != kOfChats.end() ||
                       std::ranges::find(kTexts, key) != kTexts.end() ||
                       std::ranges::find(kOptions, key) != kOptions.end();
    if (known || record.value(i).is_null()) continue;
    const std::string ours = meant(key);
    throw Error(cat(record.where(), ": has no option ", quote(key),
                    ours.empty() ? "" : cat(", only ", quote(ours))),
                "options of a record are " + join(kOptions) + ", beside id and continuations");
  }
}

// Throws if a record with continuations also has options for generated text.
void check_scored_keys(const Json& record) {
  for (const std::string& key : kOptions) {
    if (!record.has(key)) continue;
    throw Error(cat(record.where(), ": has ", quote(key), " beside ", quote(kContinuations),
                    ", which are given and not generated"),
                "remove one of them");
  }
}

int64_t integer(const Json& value, int64_t least, int64_t most) {
  const int64_t number = value.as_int();
  if (number < least || number > most) {
    fail(value.where(), ": is ", number, ", expected an integer from ", least, " to ", most);
  }
  return number;
}

// OpenAI's chats have a boolean here: true asks for the drawn token alone.
std::optional<int64_t> logprobs_of(const Json& value) {
  if (value.is_bool()) return value.as_bool() ? std::optional<int64_t>(0) : std::nullopt;
  return integer(value, 0, kMostLogprobs);
}

void add_stop(const Json& text, std::vector<std::string>& stops) {
  stops.push_back(text.as_string());
  if (stops.back().empty()) fail(text.where(), ": is an empty string, which is everywhere");
}

// Reads stop strings from one string or an array of strings.
std::vector<std::string> stops_of(const Json& value) {
  std::vector<std::string> stops;
  if (!value.is_array()) add_stop(value, stops);
  for (size_t i = 0; value.is_array() && i < value.size(); ++i) add_stop(value[i], stops);
  return stops;
}

}  // namespace

std::optional<Json> record_id(const Json& record) {
  const std::optional<Json> id = record.find("id");
  if (id && !id->is_string() && !id->is_number()) {
    fail(id->where(), ": is ", id->brief(), ", expected a string or a number");
  }
  return id;
}

PromptRecord read_prompt_record(const Json& record, const Request& defaults, int64_t vocab_size) {
  PromptRecord out;
  out.text_key = text_key(record);
  check_keys(record);
  out.scored = record.has(kContinuations);
  if (out.scored) check_scored_keys(record);
  out.max_new_tokens = defaults.max_new_tokens;
  if (const auto most = record.find("max_tokens")) out.max_new_tokens = integer(*most, 1, kMost);
  SamplingOptions& sampling = out.sampling;
  sampling = defaults.sampling;
  if (const auto value = record.find("temperature")) {
    sampling.temperature = static_cast<float>(value->as_double());
  }
  if (const auto value = record.find("top_k")) {
    sampling.top_k = static_cast<int32_t>(integer(*value, 0, kMost));
  }
  if (const auto value = record.find("top_p")) {
    sampling.top_p = static_cast<float>(value->as_double());
  }
  with_context(record.where(), [&] { check_sampling(sampling); });
  if (const auto seed = record.find("seed")) {
    out.seed = static_cast<uint64_t>(integer(*seed, 0, std::numeric_limits<int64_t>::max()));
  }
  if (const auto n = record.find("n")) out.answers = integer(*n, 1, kMostAnswers);
  if (const auto stop = record.find("stop")) out.stops = stops_of(*stop);
  if (const auto ids = record.find("stop_token_ids")) out.stop_ids = ids_of(*ids, vocab_size);
  out.logprobs = defaults.logprobs;
  if (const auto logprobs = record.find("logprobs")) out.logprobs = logprobs_of(*logprobs);
  return out;
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

}  // namespace fp8kv

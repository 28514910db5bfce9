#include "inputs/prompts/prompts.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "data/records.h"
#include "files/file.h"
#include "inputs/prompts/continuations.h"
#include "inputs/prompts/prompt_record.h"

namespace fp8kv {
namespace {

constexpr uint64_t kMaxPromptFile = uint64_t(1) << 30;
constexpr const char* kStdin = "standard input";
constexpr const char* kOneRecord = R"(write one JSON record a line: {"prompt": "..."})";

}  // namespace

Prompts::Prompts(const RunOptions& options, const Request& defaults, const Tokenizer* tokenizer,
                 ChatText* chats, const ModelConfig& config)
    : options_(options),
      defaults_(defaults),
      tokenizer_(tokenizer),
      chats_(chats),
      config_(config) {
  if (!options.stops.empty()) need_tokenizer("--stop", "stop_token_ids of a record need none");
  for (size_t i = 0; i < options.prompts.size(); ++i) {
    const std::string name = cat("--prompt ", i + 1);
    size_t bad = 0;
    if (!is_utf8(options.prompts[i], &bad)) fail(name, ": is not valid UTF-8 at byte ", bad);
    Prompt prompt = from_said(options.prompts[i], name);
    prompt.stops = options.stops;
    check(prompt);
    ask(prompt, options.answers, std::nullopt);
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
  std::optional<Json> id;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    take_line(std::string_view(text).substr(at, end - at), label, id);
    at = end + 1;
  }
  if (known_.empty()) throw Error(cat(label, ": has no prompts"), kOneRecord);
}

std::vector<Request> Prompts::requests() const {
  std::vector<Request> requests;
  for (const Prompt& prompt : known_) requests.push_back(prompt.request);
  return requests;
}

void Prompts::need_tokenizer(const std::string& name, const char* way_out) const {
  if (tokenizer_ != nullptr) return;
  throw Error(cat(name, ": is text, and the model has no tokenizer"), way_out);
}

Prompt Prompts::from_text(const std::string& text, const std::string& name) const {
  need_tokenizer(name);
  Prompt prompt{name, text, std::nullopt, std::nullopt, {}, {}, defaults_};
  prompt.request.prompt = tokenizer_->encode(text, true);
  return prompt;
}

Prompt Prompts::from_joined(const std::string& text, const std::string& name) const {
  Prompt prompt{name, text, std::nullopt, std::nullopt, {}, {}, defaults_};
  std::vector<int32_t>& ids = prompt.request.prompt;
  ids = chats_->joined(text);
  ids.insert(ids.begin(), tokenizer_->prefix().begin(), tokenizer_->prefix().end());
  ids.insert(ids.end(), tokenizer_->suffix().begin(), tokenizer_->suffix().end());
  return prompt;
}

// A prompt from text. With --chat the text is a user's message.
Prompt Prompts::from_said(const std::string& text, const std::string& name) const {
  if (!options_.as_chat) return from_text(text, name);
  need_tokenizer(name);
  if (chats_->joins()) return from_joined(cat("user: ", text, "\nassistant:"), name);
  ChatText::Rendered chat = chats_->turn(text);
  Prompt prompt{name, chat.text.bytes(), std::nullopt, std::nullopt, {}, {}, defaults_};
  prompt.request.prompt = std::move(chat.ids);
  return prompt;
}

Prompt Prompts::from_chat(const Json& record) const {
  need_tokenizer(record.where());
  // Joined like calibration joins it, up to the start of the answer.
  if (chats_->joins()) {
    return from_joined(read_record(record).text + "\nassistant:", record.where());
  }
  ChatText::Rendered chat = chats_->record(record, true);
  Prompt prompt{record.where(), chat.text.bytes(), std::nullopt, std::nullopt, {}, {}, defaults_};
  prompt.request.prompt = std::move(chat.ids);
  return prompt;
}

// Refuses, without --json, a key whose result only JSON can show.
void Prompts::need_json(const Json& value) const {
  if (options_.json) return;
  throw Error(cat(value.where(), ": is for JSON, and the answers are text"), "add --json");
}

Prompt Prompts::from_ids(const Json& record) const {
  Prompt prompt;
  prompt.name = record.where();
  prompt.request = defaults_;
  prompt.request.prompt = ids_of(record.at("input_ids"), config_.vocab_size);
  if (tokenizer_ != nullptr) prompt.text = tokenizer_->decode(prompt.request.prompt, false);
  return prompt;
}

// A prompt with continuations to score.
Prompt Prompts::from_continuations(const Json& record, const std::string& text_key) const {
  const Json list = record.at("continuations");
  need_json(list);
  if (text_key == "messages" || text_key == "conversations" || options_.as_chat) {
    throw Error(cat(list.where(), ": cannot be scored behind a chat"),
                "give the chat as it is rendered, as prompt or input_ids, and without --chat");
  }
  const bool as_ids = text_key == "input_ids";
  if (!as_ids) need_tokenizer(record.where());
  Prompt prompt = as_ids ? from_ids(record) : Prompt{};
  prompt.name = record.where();
  if (!as_ids) prompt.text = record.at(text_key).as_string();
  GivenContinuations given =
      as_ids ? id_continuations(list, prompt.request.prompt, tokenizer_, config_.vocab_size)
             : text_continuations(list, prompt.text, *tokenizer_);
  const Alternative& first = given.alternatives[0];
  prompt.request.prompt.assign(first.ids.begin(), first.ids.begin() + first.begin);
  prompt.continuations = std::move(given.texts);
  prompt.request.continuations = std::move(given.alternatives);
  return prompt;
}

void Prompts::take_record(const Json& record, const std::optional<Json>& id) {
  const PromptRecord asked = read_prompt_record(record, defaults_, config_.vocab_size);
  if (asked.scored) {
    Prompt prompt = from_continuations(record, asked.text_key);
    prompt.id = id;
    check(prompt);
    known_.push_back(std::move(prompt));
    return;
  }
  if (record.has("logprobs") && asked.logprobs) need_json(record.at("logprobs"));
  Prompt prompt;
  if (asked.text_key == "input_ids") {
    prompt = from_ids(record);
  } else if (asked.text_key == "messages" || asked.text_key == "conversations") {
    prompt = from_chat(record);
  } else {
    prompt = from_said(record.at(asked.text_key).as_string(), record.where());
  }
  if (asked.stops && !asked.stops->empty()) {
    need_tokenizer(record.at("stop").where(), "stop_token_ids need none");
  }
  prompt.id = id;
  prompt.stops = asked.stops.value_or(options_.stops);
  prompt.request.max_new_tokens = asked.max_new_tokens;
  prompt.request.stop_ids = asked.stop_ids;
  prompt.request.sampling = asked.sampling;
  prompt.request.logprobs = asked.logprobs;
  check(prompt);
  ask(prompt, asked.answers ? asked.answers : options_.answers, asked.seed);
}

// Takes the prompt once for each wanted answer. Answers are numbered if their number was given.
void Prompts::ask(const Prompt& prompt, std::optional<int64_t> answers,
                  std::optional<uint64_t> seed) {
  for (int64_t i = 0; i < answers.value_or(1); ++i) {
    Prompt& asked = known_.emplace_back(prompt);
    if (answers) asked.answer = i;
    // A record's own seed makes its answers independent of its position.
    asked.request.sampling.seed = seed ? sequence_seed(*seed, static_cast<uint64_t>(i))
                                       : sequence_seed(options_.seed, count_++);
  }
}

// Reads one record. Sets `id` as soon as it is known, even if the record is then refused.
void Prompts::take_line(std::string_view line, const std::string& label, std::optional<Json>& id) {
  ++line_;
  if (line.find_first_not_of(" \t\r") == line.npos) return;
  ++records_;
  const Json record = [&] {
    try {
      return Json::parse_line(line, line_, label);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      throw Error(error.what(), kOneRecord);
    }
  }();
  if (!record.is_object()) {
    throw Error(cat(record.where(), ": is ", record.brief(), ", expected an object"), kOneRecord);
  }
  id = record_id(record);
  take_record(record, id);
}

void Prompts::check(const Prompt& prompt) const {
  check_request(prompt.request, prompt.name, config_);
  check_pages(prompt.request, prompt.name, config_, pages_);
}

// Reads records until a prompt or a refusal can be returned.
void Prompts::take_stream(bool wait) {
  while (known_.empty() && !refused_) {
    const std::optional<std::string> line = input_->next(wait);
    if (!line) break;
    std::optional<Json> id;
    try {
      take_line(*line, kStdin, id);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      refused_ = RefusedPrompt{id, error};
      ++refused_count_;
    }
  }
  if (wait && records_ == 0) throw Error(cat(kStdin, ": has no prompts"), kOneRecord);
}

std::optional<std::variant<Prompt, RefusedPrompt>> Prompts::next(bool wait) {
  if (known_.empty() && input_ && !failure_) {
    try {
      take_stream(wait);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      failure_ = std::current_exception();
    }
  }
  if (refused_) return *std::exchange(refused_, std::nullopt);
  if (known_.empty()) return std::nullopt;
  Prompt prompt = std::move(known_.front());
  known_.pop_front();
  return prompt;
}

void Prompts::fail_late() const {
  if (failure_) std::rethrow_exception(failure_);
  if (refused_count_ == 0) return;
  throw Error(
      cat(refused_count_, " of ", count_of(records_, "record"), " could not be used"),
      options_.json ? "their lines say why, under \"error\"" : "why is said above, for each",
      ErrorKind::check);
}

}  // namespace fp8kv

#include "inputs/prompts.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "data/records.h"
#include "files/file.h"
#include "inputs/prompt_record.h"

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
  for (size_t i = 0; i < options.prompts.size(); ++i) {
    const std::string name = cat("--prompt ", i + 1);
    size_t bad = 0;
    if (!is_utf8(options.prompts[i], &bad)) fail(name, ": is not valid UTF-8 at byte ", bad);
    Prompt prompt = from_said(options.prompts[i], name);
    check(prompt);
    prompt.request.sampling.seed = sequence_seed(options_.seed, count_++);
    known_.push_back(std::move(prompt));
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

void Prompts::need_tokenizer(const std::string& name) const {
  if (tokenizer_ != nullptr) return;
  throw Error(cat(name, ": is text, and the model has no tokenizer"),
              "records with input_ids need none");
}

Prompt Prompts::from_text(const std::string& text, const std::string& name) const {
  need_tokenizer(name);
  Prompt prompt{name, text, std::nullopt, std::nullopt, {}, defaults_};
  prompt.request.prompt = tokenizer_->encode(text, true);
  return prompt;
}

Prompt Prompts::from_joined(const std::string& text, const std::string& name) const {
  Prompt prompt{name, text, std::nullopt, std::nullopt, {}, defaults_};
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
  Prompt prompt{name, chat.text.bytes(), std::nullopt, std::nullopt, {}, defaults_};
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
  Prompt prompt{record.where(), chat.text.bytes(), std::nullopt, std::nullopt, {}, defaults_};
  prompt.request.prompt = std::move(chat.ids);
  return prompt;
}

// One prompt for each answer that the record asks for.
std::vector<Prompt> Prompts::from_record(const Json& record) {
  const PromptRecord asked = read_prompt_record(record, defaults_, config_.vocab_size);
  Prompt prompt;
  if (asked.text_key == "input_ids") {
    prompt.name = record.where();
    prompt.request.prompt = ids_of(record.at("input_ids"), config_.vocab_size);
    if (tokenizer_ != nullptr) prompt.text = tokenizer_->decode(prompt.request.prompt, false);
  } else if (asked.text_key == "messages" || asked.text_key == "conversations") {
    prompt = from_chat(record);
  } else {
    prompt = from_said(record.at(asked.text_key).as_string(), record.where());
  }
  if (!asked.stops.empty() && tokenizer_ == nullptr) {
    throw Error(cat(record.at("stop").where(), ": is text, and the model has no tokenizer"),
                "stop_token_ids need none");
  }
  prompt.stops = asked.stops;
  prompt.request.max_new_tokens = asked.max_new_tokens;
  prompt.request.stop_ids = asked.stop_ids;
  prompt.request.sampling = asked.sampling;
  check(prompt);
  std::vector<Prompt> prompts(static_cast<size_t>(asked.answers.value_or(1)), prompt);
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (asked.answers) prompts[i].answer = static_cast<int64_t>(i);
    // A record's own seed makes its answers independent of its position.
    prompts[i].request.sampling.seed =
        asked.seed ? sequence_seed(*asked.seed, i) : sequence_seed(options_.seed, count_++);
  }
  return prompts;
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
  for (Prompt& prompt : from_record(record)) {
    prompt.id = id;
    known_.push_back(std::move(prompt));
  }
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

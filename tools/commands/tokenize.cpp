#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "commands/commands.h"
#include "data/data_source.h"
#include "data/documents.h"
#include "data/files/find_data.h"
#include "data/records.h"
#include "data/text_stream.h"
#include "inputs/chat_text.h"
#include "show/answers/token_list.h"
#include "show/output.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLongestText = size_t(1) << 30;  // for a page, or a JSON object

std::string_view whole_text(TextStream& text, const std::string& label) {
  const std::string_view whole = text.peek(kLongestText + 1);
  if (whole.size() <= kLongestText) return whole;
  throw Error(cat(label, ": a text of more than ", human_bytes(kLongestText)),
              "show a part of it: head -c 1000000 FILE");
}

// Makes the token lists like ModelText makes windows.
class Tokenizing {
 public:
  Tokenizing(const TokenizeOptions& options, const Tokenizer& tokenizer, Log& log)
      : options_(options),
        tokenizer_(tokenizer),
        chats_(options.model, options.chat, tokenizer, log) {}

  bool more() const { return options_.records == 0 || count_ < options_.records; }

  void text(std::string_view text, const std::string& where) {
    if (options_.as_chat) {
      while (text.ends_with('\n')) text.remove_suffix(1);
      return show_text("text", said(text), where);
    }
    show_text("text", std::string(text), where);
  }

  void record(const Json& json) {
    const RecordForm& form = form_of(json);
    if (form.is_chat && !chats_.joins()) {
      ChatText::Rendered chat = chats_.record(json, options_.as_chat);
      return show_chat(form.name(), std::move(chat), json.where());
    }
    const Record record = read_record(json);
    if (record.ids) return show_ids(*record.ids, form.name(), json.where());
    if (options_.as_chat && !form.is_chat) {
      return show_text(form.name(), said(record.text), json.where());
    }
    if (form.is_chat) {
      const char* begin_of_answer = options_.as_chat ? "\nassistant:" : "";
      return show_text(form.name(), Joined{record.text + begin_of_answer}, json.where());
    }
    show_text(form.name(), record.text, json.where());
  }

 private:
  // A conversation whose messages are joined as plain text.
  struct Joined {
    std::string text;
  };
  using Text = std::variant<std::string, Joined, ChatText::Rendered>;

  Text said(std::string_view text) {
    if (chats_.joins()) return Joined{cat("user: ", text, "\nassistant:")};
    return chats_.turn(text);
  }

  void show_text(const std::string& form, Text text, const std::string& where) {
    if (auto* chat = std::get_if<ChatText::Rendered>(&text)) {
      return show_chat(form, std::move(*chat), where);
    }
    auto* joined = std::get_if<Joined>(&text);
    std::string& plain = joined ? joined->text : std::get<std::string>(text);
    std::vector<int32_t> ids = joined ? chats_.joined(plain) : tokenizer_.encode(plain, false);
    const std::vector<int32_t>& prefix = tokenizer_.prefix();
    if (!ids.empty()) ids.insert(ids.begin(), prefix.begin(), prefix.end());
    show({0, where, form, std::move(plain), std::move(ids), {}}, prefix.size());
  }

  void show_chat(const std::string& form, ChatText::Rendered chat, const std::string& where) {
    const std::vector<int32_t>& prefix = tokenizer_.prefix();
    const bool has_prefix = chat.ids.size() >= prefix.size() &&
                            std::equal(prefix.begin(), prefix.end(), chat.ids.begin());
    show({0, where, form, chat.text.bytes(), std::move(chat.ids), {}},
         has_prefix ? prefix.size() : 0);
  }

  void show_ids(const Json& array, const std::string& form, const std::string& where) {
    TokenList list{0, where, form, std::nullopt, {}, {}};
    for (size_t i = 0; i < array.size(); ++i) {
      const int64_t id = array[i].as_int();
      if (id < 0 || id >= tokenizer_.vocab_size()) {
        fail(array[i].where(), ": is ", id, ", expected an id of the vocabulary, 0 to ",
             tokenizer_.vocab_size() - 1);
      }
      list.ids.push_back(static_cast<int32_t>(id));
    }
    show(std::move(list), 0);
  }

  // Prints the list. `prefix` counts the tokens that start each window.
  void show(TokenList list, size_t prefix) {
    const auto length = static_cast<size_t>(options_.seq_len);
    if (length <= prefix) {
      throw Error(cat("a window of ", count_of(length, "token"),
                      " has no room for text: every "
                      "prompt starts with ",
                      count_of(prefix, "token"), " of its own"),
                  "pass a larger --seq-len", ErrorKind::usage);
    }
    list.record = ++count_;
    for (size_t at = prefix; at < list.ids.size(); at += length - prefix) {
      list.windows.push_back(list.windows.empty() ? 0 : at);
    }
    if (options_.json) return print(token_list_json(list, tokenizer_));
    print_text((count_ > 1 ? "\n" : "") + token_list_text(list, tokenizer_));
  }

  const TokenizeOptions& options_;
  const Tokenizer& tokenizer_;
  ChatText chats_;
  uint64_t count_ = 0;
};

}  // namespace

void run_command(const TokenizeOptions& options) {
  const NothingToTidy only_prints;
  Log log(options.verbosity);
  const std::optional<Tokenizer> tokenizer = Tokenizer::find_in(options.model);
  if (!tokenizer) {
    throw Error(cat(quote(options.model.string()), ": has no ", Tokenizer::kFiles),
                "check the path of the model");
  }
  Tokenizing tokenizing(options, *tokenizer, log);
  for (const fs::path& file : find_data(std::vector{options.input}, options.choice.split, log)) {
    if (!tokenizing.more()) break;
    const DataSource source = open_data(file, options.choice.column);
    with_unchanged(source, [&] {
      for_each_document(source, {[&] { return tokenizing.more(); },
                                 [&](TextStream& text) {
                                   tokenizing.text(whole_text(text, source.label), source.label);
                                 },
                                 [&](const Json& record) { tokenizing.record(record); }});
    });
  }
}

}  // namespace fp8kv

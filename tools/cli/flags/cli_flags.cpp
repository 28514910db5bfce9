#include "cli/flags/cli_flags.h"

#include <CLI/CLI.hpp>

#include "backend/open/open.h"
#include "base/text.h"
#include "cli/flags/cli_checks.h"
#include "core/cache/cache_type.h"
#include "data/files/data_kind.h"

namespace fp8kv {

CLI::Option* add_values(CLI::App& command, const std::string& names, const std::string& text) {
  constexpr int kMost = 1 << 20;
  return command
      .add_option(
          names, [](const CLI::results_t&) { return true; }, text)
      ->expected(1, kMost)
      ->allow_extra_args(false);
}

template <typename T>
CLI::Option* add_list(CLI::App& command, const std::string& names, std::vector<T>& into,
                      T (*read)(const std::string&), const std::string& text) {
  const auto take = [&into, read](const std::vector<std::string>& values) {
    into.clear();
    for (const std::string& value : values) into.push_back(read(value));
  };
  return command.add_option_function<std::vector<std::string>>(names, take, text)
      ->delimiter(',')
      ->allow_extra_args(false);
}
template CLI::Option* add_list(CLI::App&, const std::string&, std::vector<Policy>&,
                               Policy (*)(const std::string&), const std::string&);
template CLI::Option* add_list(CLI::App&, const std::string&, std::vector<std::string>&,
                               std::string (*)(const std::string&), const std::string&);
template CLI::Option* add_list(CLI::App&, const std::string&,
                               std::vector<std::optional<CacheType>>&,
                               std::optional<CacheType> (*)(const std::string&),
                               const std::string&);

void add_skip_layers(CLI::App& command, std::vector<std::string>& into, const std::string& text) {
  command.add_option("--kv-cache-dtype-skip-layers", into, text)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LAYER,...");
}

CLI::Option* choice(CLI::Option* option, const std::vector<std::string>& words) {
  std::string metavar;
  for (const std::string& word : words) metavar += (metavar.empty() ? "" : "|") + word;
  return option->transform(one_of(words))->type_name(metavar);
}

void add_common(CLI::App& command, CommonOptions& options) {
  command.add_flag("--json", options.json, "Print the result as JSON");
  auto* quiet = command.add_flag_callback(
      "-q,--quiet", [&] { options.verbosity = Verbosity::quiet; }, "Only errors on stderr");
  auto* verbose = command.add_flag_callback(
      "-v,--verbose", [&] { options.verbosity = Verbosity::verbose; }, "More on stderr");
  quiet->excludes(verbose);
}

void add_no_cache(CLI::App& command, bool& no_cache) {
  command.add_flag("--no-cache", no_cache,
                   "Read a model at an address (hf://, https://) anew, and keep nothing of it");
}

CLI::Option* add_policy(CLI::App& command, const std::string& text) {
  const std::string about = cat(text, ". ", policy_list());
  return command.add_option("--policy", about)->check(a_policy())->type_name("POLICY");
}

std::optional<Policy> given_policy(const CLI::Option& option) {
  if (option.count() == 0) return std::nullopt;
  return parse_policy(option.as<std::string>());
}

std::string policy_list() {
  std::string kinds;
  for (const PolicyKind& kind : policy_kinds()) {
    kinds += cat(kinds.empty() ? "" : ". ", "'", kind.spelling, "': ", kind.summary);
  }
  return kinds;
}

std::string data_text() {
  return cat("Text: ", data_kind_list(),
             ", as they are or packed as .gz or .zst; folders of such "
             "files, patterns, or - for stdin");
}

CLI::Option* add_data(CLI::App& command) {
  return add_values(command, "-d,--data", data_text())
      ->required()
      ->check(a_path())
      ->type_name("FILE...");
}

void add_shuffle(CLI::App& command, DataChoice& choice) {
  command
      .add_option_function<uint64_t>(
          "--shuffle", [&choice](uint64_t seed) { choice.shuffle = seed; },
          "Take windows evenly from all of the data, drawn by this seed, in place of the first "
          "ones")
      ->transform(whole_number(0))
      ->type_name("SEED");
}

void add_data_choice(CLI::App& command, DataChoice& choice) {
  command
      .add_option("--column", choice.column,
                  "The field of records, or the column, that holds the text or the messages")
      ->check(a_path())
      ->type_name("NAME");
  command
      .add_option("--split", choice.split,
                  "Of a folder with the splits of a data set: train, test, or what its files say")
      ->check(a_path())
      ->type_name("NAME");
}

namespace {

void add_seq_len(CLI::App& command, WindowRequest& request, int64_t least) {
  command
      .add_option("--seq-len", request.seq_len,
                  "Tokens in a window at most; the model's context if shorter")
      ->transform(whole_number(static_cast<uint64_t>(least)))
      ->each([&request](const std::string&) { request.seq_len_given = true; })
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace

void add_windows(CLI::App& command, WindowRequest& request, int64_t least) {
  command
      .add_option("--samples", request.samples,
                  "Windows of text to run; fewer in the data is an error only when given")
      ->transform(whole_number(1))
      ->each([&request](const std::string&) { request.samples_given = true; })
      ->capture_default_str()
      ->type_name("N");
  add_seq_len(command, request, least);
}

void add_windows_or_auto(CLI::App& command, WindowRequest& request) {
  const auto take = [&request](const std::string& given) {
    request.samples_given = true;
    request.until_settled = given == "auto";
    if (!request.until_settled) request.samples = std::stoull(given);
  };
  command
      .add_option_function<std::string>(
          "--samples", take,
          cat("Windows of text to run; fewer in the data is an error only when given. With ",
              "auto: 16, and twice as many until the largest magnitudes settle, ", request.samples,
              " at most"))
      ->transform(a_count_or_auto())
      ->default_str(cat(request.samples))
      ->type_name("N|auto");
  add_seq_len(command, request, 1);
}

void add_chat(CLI::App& command, ChatRequest& request) {
  command
      .add_option("--chat-template", request.chat_template,
                  "What renders chats: one of the model's templates by its name, a file, or none, "
                  "which joins messages as 'role: content'; the model's own unless given")
      ->check(a_path())
      ->type_name("NAME");
  command.add_flag("--user-special-tokens", request.user_special_tokens,
                   "Special tokens that messages spell become special tokens; else they are text");
}

void add_report(CLI::App& command, std::filesystem::path& report, const char* what) {
  command.add_option("--report", report, cat("Also write ", what, " as a page to look at (HTML)"))
      ->check(a_path())
      ->type_name("FILE");
}

CLI::Option* add_summary(CLI::App& command, std::filesystem::path& summary) {
  return command
      .add_option("--summary", summary,
                  "Also write the outcome for the page of a CI job (Markdown)")
      ->check(a_path())
      ->type_name("FILE");
}

CLI::Option* add_layer_table(CLI::App& command, bool& table) {
  return command.add_flag("--table", table, "Print the figures of every layer, not the summary");
}

CLI::Option* add_require_evidence(CLI::App& command, bool& require) {
  return command.add_flag("--require-evidence", require,
                          "Exit with 1 if the scales were made from too little text to be judged");
}

CLI::Option* add_accept_foreign(CLI::App& command, bool& accept) {
  return command.add_flag("--accept-foreign-scales", accept,
                          "Take scales of another model too; what differs is recorded");
}

void add_strict(CLI::App& command, bool& strict) {
  command.add_flag("--strict", strict,
                   "Refuse a config.json with keys that are not known here, instead of a warning");
}

void add_device(CLI::App& command, std::string& device, int& threads) {
  choice(command.add_option("--device", device, "Where to compute"), device_names())
      ->capture_default_str();
  command.add_option("--threads", threads, "CPU threads; one per physical core unless given")
      ->transform(whole_number(1, 1024))
      ->type_name("N");
}

}  // namespace fp8kv

// Flags that several commands share, and helpers for kinds of flags.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "options/options.h"
#include "policy/policies.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fp8kv {

// Takes any number of values, also where the option is given several times. Read them with
// `results()`.
CLI::Option* add_values(CLI::App& command, const std::string& names, const std::string& text);

// Adds a list option: values separated by commas, or the option given again. The values replace
// `into`. `read` converts each value, and throws for an unknown one.
template <typename T>
CLI::Option* add_list(CLI::App& command, const std::string& names, std::vector<T>& into,
                      T (*read)(const std::string&), const std::string& text);

// --kv-cache-dtype-skip-layers, with vLLM's values: layer numbers and "sliding_window".
void add_skip_layers(CLI::App& command, std::vector<std::string>& into, const std::string& text);

// An option that takes one of a few words.
CLI::Option* choice(CLI::Option* option, const std::vector<std::string>& words);

// --json, --quiet and --verbose.
void add_common(CLI::App& command, CommonOptions& options);

// --no-cache, for commands that read models at addresses.
void add_no_cache(CLI::App& command, bool& no_cache);

// --policy. Its help is `text`, then the list of all policies. Read the value with
// `given_policy()`.
CLI::Option* add_policy(CLI::App& command, const std::string& text);
std::optional<Policy> given_policy(const CLI::Option& option);

// "'amax[*F]': largest magnitude / 448, times a headroom F. 'head[*F]': ...".
std::string policy_list();

// --data, required; read it with `results()`.
CLI::Option* add_data(CLI::App& command);
// The kinds of data that --data takes, for help texts.
std::string data_text();

// --shuffle.
void add_shuffle(CLI::App& command, DataChoice& choice);

// --column and --split.
void add_data_choice(CLI::App& command, DataChoice& choice);

// --samples, and --seq-len from `least` on.
void add_windows(CLI::App& command, WindowRequest& request, int64_t least);
// --samples and --seq-len, where --samples may also be "auto".
void add_windows_or_auto(CLI::App& command, WindowRequest& request);

// --chat-template and --user-special-tokens.
void add_chat(CLI::App& command, ChatRequest& request);

// --report. `what` describes the page.
void add_report(CLI::App& command, std::filesystem::path& report, const char* what);

// --summary.
CLI::Option* add_summary(CLI::App& command, std::filesystem::path& summary);

// --table, for commands that make scales.
CLI::Option* add_layer_table(CLI::App& command, bool& table);

// --require-evidence: see missing_evidence().
CLI::Option* add_require_evidence(CLI::App& command, bool& require);

// --accept-foreign-scales.
CLI::Option* add_accept_foreign(CLI::App& command, bool& accept);

// --strict.
void add_strict(CLI::App& command, bool& strict);

// --device and --threads.
void add_device(CLI::App& command, std::string& device, int& threads);

}  // namespace fp8kv

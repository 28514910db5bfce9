// Names from an index or a header, as they appear in messages and in commands to copy.
// Each line of an input is a tensor name, a tab and a file name. NUL stands for a newline in a
// name.
#include <algorithm>

#include "base/error_text.h"
#include "base/shell.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hub_models.h"
#include "fuzz.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "show/models/tensor_list.h"

namespace fp8kv::fuzz {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr size_t kMostNames = 12;

struct Named {
  std::string tensor;
  std::string file;
};

// Makes a name that JSON can hold from at most 300 bytes.
std::string text_of(std::string_view bytes) {
  std::string text(bytes.substr(0, 300));
  std::replace(text.begin(), text.end(), '\0', '\n');
  return is_utf8(text) ? text : plain(text);
}

std::vector<Named> names_in(const std::string& input) {
  std::vector<Named> names;
  for (size_t at = 0; at < input.size() && names.size() < kMostNames;) {
    const size_t end = std::min(input.find('\n', at), input.size());
    const std::string_view line = std::string_view(input).substr(at, end - at);
    const size_t tab = std::min(line.find('\t'), line.size());
    const std::string tensor = text_of(line.substr(0, tab));
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const Named& each) { return each.tensor == tensor; });
    if (!known) names.push_back({tensor, text_of(line.substr(std::min(tab + 1, line.size())))});
    at = end + 1;
  }
  return names;
}

// Reads a $'...' word after its opening quote. Moves `at` behind the closing quote.
void read_escaped(std::string_view line, size_t& at, std::string& word) {
  while (at < line.size() && line[at] != '\'') {
    if (line[at] != '\\') {
      word += line[at++];
      continue;
    }
    require(at + 3 < line.size(), "an escape has three digits");
    int code = 0;
    for (size_t i = 1; i <= 3; ++i) {
      require(line[at + i] >= '0' && line[at + i] <= '7', "an escape is octal");
      code = 8 * code + line[at + i] - '0';
    }
    word += static_cast<char>(code);
    at += 4;
  }
  require(at < line.size(), "a quote is closed");
  ++at;
}

// Splits a line of plain and quoted words like a shell does.
Words words_of(std::string_view line) {
  Words words;
  for (size_t at = 0; at < line.size();) {
    std::string& word = words.emplace_back();
    while (at < line.size() && line[at] != ' ') {
      if (line.substr(at).starts_with("$'")) {
        at += 2;
        read_escaped(line, at, word);
      } else if (line[at] == '\'') {
        const size_t end = line.find('\'', at + 1);
        require(end != line.npos, "a quote is closed");
        word += line.substr(at + 1, end - at - 1);
        at = end + 1;
      } else if (line.substr(at).starts_with("\\'")) {
        word += '\'';
        at += 2;
      } else {
        const bool acts = std::string_view("|&;<>()$`\\\"*?[#~=!{} \t\n").find(line[at]) !=
                          std::string_view::npos;
        require(!acts, "what a shell acts on is quoted");
        word += line[at++];
      }
    }
    ++at;
  }
  return words;
}

void check_message(const Error& error) {
  const std::string text = error_text("fp8kv: ", error);
  require(terminal_text(text) == text, "a message does nothing to a terminal");
  require(std::count(text.begin(), text.end(), '\n') == (error.help().empty() ? 1 : 2),
          "a message is a line, and its way out another");
}

template <typename Work>
void check_messages_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    check_message(error);
  }
}

std::string index_of(const std::vector<Named>& names) {
  JsonWriter json;
  json.begin_object().key("weight_map").begin_object();
  for (const Named& each : names) json.member(each.tensor, each.file);
  return json.end_object().end_object().text();
}

// A shard's header. Each tensor has one number.
std::string shard_of(const std::vector<Named>& names) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object();
  for (size_t i = 0; i < names.size(); ++i) {
    json.key(names[i].tensor).begin_object().member("dtype", "F32").key("shape").begin_array();
    json.value(int64_t{1}).end_array().key("data_offsets").begin_array();
    json.value(uint64_t{4 * i}).value(uint64_t{4 * i + 4}).end_array().end_object();
  }
  const std::string header = json.end_object().text();
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(4 * names.size(), '\x3F');
}

const char* const kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
        "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 2,
        "num_hidden_layers": 2, "intermediate_size": 8, "vocab_size": 4, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 64})";

// Checks the command that fetches the missing files of a cache entry.
void check_fetch_line(const std::vector<Named>& names, const fs::path& entry) {
  [[maybe_unused]] static const bool made = [&] {  // the same for every input
    fs::create_directories(entry / "refs");
    fs::create_directories(entry / "snapshots/c0ffee");
    write(entry / "refs/main", "c0ffee");
    write(entry / "snapshots/c0ffee/config.json", kConfig);
    return true;
  }();
  write(entry / "snapshots/c0ffee/model.safetensors.index.json", index_of(names));
  try {
    static_cast<void>(find_model(entry, [](const char*) { return std::string(); }));
  } catch (const Error& error) {
    check_message(error);
    constexpr std::string_view kBefore = "fetch what is missing: hf download ";
    if (!error.help().starts_with(kBefore)) return;
    std::string_view rest = std::string_view(error.help()).substr(kBefore.size());
    if (rest.find(" --include \"") != rest.npos) return;  // our own patterns
    const Words words = words_of(rest);
    require(words.size() >= 2 && words[0] == "org/tiny", "the repository comes first");
    for (size_t i = 1; i < words.size(); ++i) {
      const bool known = std::any_of(names.begin(), names.end(),
                                     [&](const Named& each) { return each.file == words[i]; });
      require(known && !words[i].starts_with('-'), "each word is a file of the index");
    }
  }
}

void check_folder(const std::vector<Named>& names, const fs::path& folder) {
  [[maybe_unused]] static const bool made = [&] {  // the same for every input
    fs::create_directories(folder);
    write(folder / "config.json", kConfig);
    return true;
  }();
  fs::remove(folder / "model.safetensors.index.json");
  fs::remove(folder / "shard.safetensors");
  write(folder / "model.safetensors", shard_of(names));
  check_messages_of([&] {
    const std::string list =
        tensor_list_text(read_safetensors_header(folder / "model.safetensors"));
    require(terminal_text(list) == list, "a list does nothing to a terminal");
  });
  check_messages_of([&] {
    const FoundScales found = survey_scales(folder);
    if (found.refusal) check_message(*found.refusal);
  });
  fs::rename(folder / "model.safetensors", folder / "shard.safetensors");
  write(folder / "model.safetensors.index.json", index_of(names));
  check_messages_of([&] { Checkpoint::open(folder); });
}

void run(const std::string& input) {
  const std::vector<Named> names = names_in(input);
  std::string line = "words";
  Words expected = {"words"};
  for (const Named& each : names) {
    for (const std::string& name : {each.tensor, each.file}) {
      line += " " + shell_word(name);
      expected.push_back(name);
    }
  }
  require(shows_as_it_is(line), "a printed command does nothing to a terminal");
  require(words_of(line) == expected, "a printed command is read back");
  if (names.empty()) return;
  check_fetch_line(names, work_folder() / "messages/models--org--tiny");
  check_folder(names, work_folder() / "messages/model");
}

std::vector<std::string> seeds(const std::filesystem::path&) {
  const std::string layer = "model.layers.0.self_attn.";
  return {"a\tmodel-00001-of-00002.safetensors\nb\tmodel 2.safetensors\n",
          layer + "k_proj.k_scale\tshard.safetensors\n" + layer + "v_proj.v_scale\tx\n",
          "a\ta; touch X\nb\t$(touch X)\nc\t`touch X`\nd\t'x'\\\"\n",
          "\x1b[2J\t\x1b]0;x\x07\n\u009b2J\t\u202e\u2066\u061c\n",
          std::string("a\0FORGED\tb\0FORGED\n", 18),
          "--local-dir=/etc\t--local-dir=/etc\n",
          "../x\t../../x\n/etc/passwd\t/etc/passwd\n",
          "__metadata__\t~\n*\t*?[a]\n\t\n"};
}

}  // namespace

const Target kMessages{"messages", run, nullptr, seeds};

}  // namespace fp8kv::fuzz

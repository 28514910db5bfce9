// Commands that take any model folder, from its config and shard headers to their output.
// An input is a model folder whose shards are only headers. The fuzzer adds the data, so that
// offsets stay valid after a change.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <map>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "checkpoint/generation_config.h"
#include "commands/commands.h"
#include "files/file.h"
#include "fuzz.h"
#include "json/json.h"
#include "model_folder.h"
#include "scales/scale_file.h"
#include "scales/write/inject_targets.h"

namespace fp8kv::fuzz {
namespace {

namespace fs = std::filesystem;

// Data bytes per shard are limited, whatever the header says. Most of them are a hole in the file.
constexpr uint64_t kMostData = uint64_t{1} << 24;
constexpr uint64_t kFilled = uint64_t{1} << 12;

bool is_shard(const FolderFile& file) {
  return file.name.ends_with(".safetensors") && file.bytes.starts_with('{');
}

// The end of the last tensor.
uint64_t data_bytes(const std::string& header) {
  uint64_t end = 0;
  try {
    const Json json = Json::parse(header, "header");
    for (size_t i = 0; i < json.size(); ++i) {
      const auto offsets = json.value(i).find("data_offsets");
      if (!offsets || offsets->size() != 2 || !(*offsets)[1].is_number()) continue;
      end = std::max(end, static_cast<uint64_t>(std::max<int64_t>((*offsets)[1].as_int(), 0)));
    }
  } catch (const Error&) {  // not a header at all
  }
  return std::min(end, kMostData);
}

std::string little_endian(uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

// 1 in BF16 and nearly 1 in F32, so that some scales are usable.
std::string ones(uint64_t count) {
  std::string bytes(count, '\x3F');
  for (size_t i = 0; i < count; i += 2) bytes[i] = '\x80';
  return bytes;
}

void lay_out_model(std::vector<FolderFile> files, const fs::path& folder) {
  std::map<std::string, uint64_t> grown;  // new sizes, with a hole at the end
  for (FolderFile& file : files) {
    grown.erase(file.name);  // the last file of a name wins
    if (!is_shard(file)) continue;
    const uint64_t data = data_bytes(file.bytes);
    file.bytes = little_endian(file.bytes.size()) + file.bytes + ones(std::min(data, kFilled));
    if (data > kFilled) grown[file.name] = file.bytes.size() - kFilled + data;
  }
  lay_out(files, folder);
  for (const auto& [name, size] : grown) fs::resize_file(folder / name, size);
}

// Captures standard output in a file that all runs share.
class Captured {
 public:
  Captured() : kept_(dup(STDOUT_FILENO)) {
    require(kept_ >= 0 && file() >= 0 && ftruncate(file(), 0) == 0 &&
                lseek(file(), 0, SEEK_SET) == 0 && dup2(file(), STDOUT_FILENO) >= 0,
            "stdout can be captured");
  }
  ~Captured() {
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  std::string text() const {
    std::string text(static_cast<size_t>(lseek(file(), 0, SEEK_END)), '\0');
    require(pread(file(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
            "a read");
    return text;
  }

 private:
  static int file() {
    static const int file = memfd_create("stdout", 0);
    return file;
  }

  int kept_;
};

bool prints_first(const ExtractOptions& options) {
  return options.list;  // lists scales even if they cannot be used
}
bool prints_first(const VerifyOptions&) {
  return true;  // prints verdicts even if some fail
}
template <typename Options>
bool prints_first(const Options&) {
  return false;
}

// Runs a command with outputs in `outputs`. A failure must give a reason, and print and leave
// nothing. JSON must be valid. Returns whether the command succeeded.
template <typename Options>
bool runs(Options options, const fs::path& outputs) {
  options.verbosity = Verbosity::quiet;
  const bool writes = !fs::is_empty(outputs);
  const Captured captured;
  try {
    run_command(options);
  } catch (const Error& error) {
    require(error.what()[0] != '\0', "an error says something");
    require(is_utf8(error.what()) && is_utf8(error.help()), "an error is text");
    require(prints_first(options) || captured.text().empty(), "nothing is printed before an error");
    require(writes || fs::is_empty(outputs), "nothing is left behind by an error");
    const std::string before = captured.text();
    if (options.json && !before.empty()) Json::parse(before, "stdout");
    return false;
  }
  const std::string out = captured.text();
  require(is_utf8(out), "what is printed is text");
  if (options.json) Json::parse(out, "stdout");
  return true;
}

std::string contents(const fs::path& folder) {
  std::string all;
  for (const std::string& bytes : files_below(folder, ""))
    all += little_endian(bytes.size()) + bytes;
  return all;
}

void inspect(const fs::path& model, uint64_t choice, const fs::path& outputs) {
  InspectOptions options;
  options.path = model;
  options.json = choice % 2 == 0;
  runs(options, outputs);
}

void verify(const fs::path& model, uint64_t choice, const fs::path& outputs) {
  VerifyOptions options;
  options.path = model;
  options.json = choice % 2 == 0;
  runs(options, outputs);
}

void plan(const fs::path& model, uint64_t choice, const fs::path& outputs) {
  PlanOptions options;
  options.model = model;
  options.json = choice % 2 == 0;
  options.memory = choice % 3 == 0 ? 0 : uint64_t{80} << 30;
  options.tp = choice % 5 == 0 ? 2 : 1;
  options.context = choice % 7 == 0 ? 100 : 0;
  runs(options, outputs);
}

void inject(const fs::path& model, const std::string& scales, uint64_t choice,
            const fs::path& outputs) {
  const auto targets = inject_targets();
  InjectCommandOptions options;
  options.model = model;
  options.scales = outputs.parent_path() / "given.json";
  options.target = targets[choice % targets.size()].name;
  options.out = outputs / "model";
  options.replace = !inject_target_at(options.target).is_file;
  options.json = choice % 2 == 0;
  write(options.scales, scales);
  if (!runs(options, outputs)) return;
  require(fs::exists(options.out), "inject makes its output");
  if (!fs::is_directory(options.out)) return;
  ExtractOptions again;
  again.source = options.out;
  again.out = outputs / "again.json";
  require(runs(again, outputs), "what was injected can be extracted");
}

void inject_given(const fs::path& model, uint64_t choice, const fs::path& outputs) {
  const std::string given = R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
      "scaling_factor": {"0": {"0": 0.5, "1": 2}}}})";
  inject(model, given, choice, outputs);
}

// Extracts the folder's scales to a file, and injects them again.
void extract(const fs::path& model, uint64_t choice, const fs::path& outputs) {
  ExtractOptions options;
  options.source = model;
  options.json = choice % 2 == 0;
  options.list = choice % 5 == 0;
  if (!options.list) options.out = outputs / "scales.json";
  if (!runs(options, outputs) || options.list) return;
  const std::string text = read(options.out);
  require(scale_file_text(parse_scale_file(Json::parse(text, "file"), "file")) == text,
          "what is extracted is read back");
  fs::remove(options.out);
  require(fs::is_empty(outputs), "extract writes one file");
  inject(model, text, choice, outputs);
}

constexpr void (*kEach[])(const fs::path& model, uint64_t choice, const fs::path& outputs) = {
    inspect, verify, plan, extract, inject_given};

// Runs one command per input, because all commands read the same files. Similar inputs reach the
// other commands.
void run(const std::string& input) {
  const fs::path model = work_folder() / "commands/model";
  const fs::path outputs = work_folder() / "commands/outputs";
  fs::create_directories(outputs);
  if (!fs::is_empty(outputs)) {
    fs::remove_all(outputs);
    fs::create_directory(outputs);
  }
  lay_out_model(files_of(input), model);
  const std::string before = contents(model);
  uint64_t choice = 0;
  for (const char c : input) choice = choice * 31 + static_cast<uint8_t>(c);
  choice >>= 16;
  kEach[choice % std::size(kEach)](model, choice / std::size(kEach), outputs);
  require(contents(model) == before, "the model is as it was");
  static_cast<void>(read_generation_config(model));
}

// The header of a whole shard.
std::string header_of(const std::string& bytes) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(bytes[size_t(i)]);
  return bytes.substr(8, length);
}

// Configs of all shapes that describe_layers knows, without weights.
std::vector<std::string> configs() {
  const std::string heads =
      R"("torch_dtype": "bfloat16", "hidden_size": 4, "head_dim": 2, "num_attention_heads": 2, )"
      R"("num_key_value_heads": 2, "max_position_embeddings": 64, )";
  return {
      R"({"architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", )" + heads +
          R"("num_hidden_layers": 2, "hybrid_override_pattern": "*M"})",
      R"({"architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", )" + heads +
          R"("layers_block_type": ["full_attention", "moe"], "time_step_limit": [0.0, Infinity]})",
      R"({"architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", )" + heads +
          R"("num_hidden_layers": 2, "full_attention_interval": 2})",
      R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", )"
      R"("text_config": {)" +
          heads + R"("num_hidden_layers": 2, "sliding_window": 8, "sliding_window_pattern": 2}})",
      R"({"architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", )"
      R"("text_config": {)" +
          heads + R"("num_hidden_layers": 2, "attention_chunk_size": 8, "no_rope_layers": []}})",
      R"({"architectures": ["JambaForCausalLM"], "model_type": "jamba", )" + heads +
          R"("num_hidden_layers": 2, "attn_layer_period": 2, "attn_layer_offset": 1})",
      R"({"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n", )"
      R"("text_config": {)" +
          heads +
          R"("num_hidden_layers": 2, "layer_types": ["full_attention", "full_attention"], )"
          R"("num_kv_shared_layers": 1}})",
      R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", )" + heads +
          R"("num_hidden_layers": 2, "sliding_window": null, "intermediate_size": 8, )"
          R"("vocab_size": 4, "rms_norm_eps": 1e-5, "rope_scaling": {"rope_type": "llama3", )"
          R"("factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}, )"
          R"("original_max_position_embeddings": 32})"};
}

std::vector<std::string> seeds(const fs::path& root) {
  std::vector<std::string> inputs;
  std::vector<FolderFile> model;
  for (const char* parent : {"tests/golden/dialects", "tests/golden", "tests/golden/quantised"}) {
    for (std::vector<FolderFile>& files : folders_below(root / parent)) {
      std::erase_if(files, [](const FolderFile& file) {
        return !file.name.ends_with(".safetensors") && !file.name.ends_with(".json") &&
               !file.name.ends_with(".npz");
      });
      std::erase_if(files, [](const FolderFile& file) {
        return file.name == "tokenizer.json" || file.name == "expected.json" ||
               file.name == "golden.json";
      });
      for (FolderFile& file : files) {
        if (file.name.ends_with(".safetensors")) file.bytes = header_of(file.bytes);
      }
      if (files.empty() || files.size() > kMostFiles) continue;  // many configs, no model
      if (files.back().name == "model.safetensors") model = files;
      inputs.push_back(input_of(files));
    }
  }
  for (const std::string& config : configs()) {
    for (FolderFile& file : model) {
      if (file.name == "config.json") file.bytes = config;
    }
    std::vector<FolderFile> files = model;
    files.push_back({"generation_config.json",
                     R"({"eos_token_id": [1, 2], "do_sample": true, "temperature": 0.6, )"
                     R"("top_p": 0.9, "top_k": 20, "repetition_penalty": 1.05})"});
    inputs.push_back(input_of(files));
  }
  return inputs;
}

}  // namespace

const Target kCommands{"commands", run, nullptr, seeds};

}  // namespace fp8kv::fuzz

#include "cli/foreign_flags.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace fp8kv {
namespace {

// Flags of llama.cpp, vLLM, SGLang, TensorRT-LLM, transformers, lm-eval, ModelOpt and
// llm-compressor. A name may have several rows. The first row whose flag the command has decides.
struct ForeignFlag {
  std::string_view name;
  std::string_view ours;
  bool same = false;  // same meaning: the flag is accepted; else only our flag's name is suggested
};

constexpr ForeignFlag kForeignFlags[] = {
    {"--max-tokens", "--max-new-tokens", true},
    {"--max-length", "--max-new-tokens"},
    {"--n-predict", "--max-new-tokens", true},
    {"--predict", "--max-new-tokens", true},
    {"--temp", "--temperature", true},
    {"-t", "--threads", true},
    {"--n-threads", "--threads", true},
    {"--num-threads", "--threads", true},
    {"--n", "--samples-per-prompt", true},
    {"--num-return-sequences", "--samples-per-prompt", true},
    {"--stop-strings", "--stop", true},
    {"--reverse-prompt", "--stop"},
    {"--top-logprobs", "--logprobs", true},
    {"--n-probs", "--logprobs", true},
    {"-f", "--prompts"},
    {"--file", "--prompts"},
    {"--prompt-file", "--prompts"},
    {"--input", "--prompts"},
    {"-b", "--max-batch"},
    {"--batch-size", "--max-batch"},
    {"--batch-size", "--batch"},
    {"--max-num-seqs", "--max-batch", true},
    {"--max-running-requests", "--max-batch", true},
    {"--gpu-memory-utilization", "--gpu-memory"},
    {"--mem-fraction-static", "--gpu-memory"},
    {"--gpu-memory", "--memory"},
    {"--gpu-memory", "--max-memory"},
    {"--memory", "--gpu-memory"},
    {"--memory", "--max-memory"},
    {"-ngl", "--device"},
    {"--n-gpu-layers", "--device"},
    {"--backend", "--device"},
    {"-ctk", "--kv-cache-dtype"},
    {"-ctv", "--kv-cache-dtype"},
    {"--cache-type-k", "--kv-cache-dtype"},
    {"--cache-type-v", "--kv-cache-dtype"},
    {"--kv-cache-quant-algo", "--kv-cache-dtype"},
    {"--kv-dtype", "--kv-cache-dtype"},
    {"--cache-dtype", "--kv-cache-dtype"},
    {"--quantization-param-path", "--scales", true},
    {"--scale-file", "--scales", true},
    {"--kv-scales", "--scales", true},
    {"--tensor-parallel-size", "--tp", true},
    {"--tp-size", "--tp", true},
    {"--inference-tensor-parallel", "--tp", true},
    {"-c", "--seq-len"},
    {"-c", "--context"},
    {"--ctx-size", "--seq-len"},
    {"--ctx-size", "--context", true},
    {"--max-model-len", "--seq-len"},
    {"--max-model-len", "--context", true},
    {"--seq-len", "--context"},
    {"--context", "--seq-len"},
    {"--max-seq-len", "--seq-len", true},
    {"--max-seq-length", "--seq-len", true},
    {"--max-sequence-length", "--seq-len", true},
    {"--num-samples", "--samples", true},
    {"--num-calibration-samples", "--samples", true},
    {"--calib-size", "--samples", true},
    {"--limit", "--items", true},
    {"--limit", "--samples"},
    {"--num-fewshot", "--few-shot", true},
    {"--tasks", "--task"},
    {"--log-samples", "--json"},
    {"--dataset", "--data"},
    {"--calib-dataset", "--data"},
    {"--text", "--data"},
    {"-f", "--data"},
    {"--file", "--data"},
    {"--output", "--out", true},
    {"--output-dir", "--out", true},
    {"--output-file", "--out", true},
    {"--out-dir", "--out", true},
    {"--export-path", "--out", true},
    {"--save-path", "--out", true},
    {"--output-path", "--out", true},
    {"--output-path", "--report"},
    {"--target", "--for"},
    {"--target", "--runtime"},
    {"--runtime", "--for"},
    {"--for", "--runtime"},
    {"--format", "--for"},
    {"--format", "--to"},
    {"--overwrite", "--force", true},
    {"-y", "--force"},
};

// Flags whose work needs no flag here. The reason stands behind "FLAG is not a flag of COMMAND".
struct NeedlessFlag {
  std::string_view name;
  std::string_view why;
};

constexpr NeedlessFlag kNeedlessFlags[] = {
    {"--batch-size", "fp8kv chooses its batches, and they do not change the result"},
    {"--color", "a terminal has colours unless NO_COLOR is set"},
    {"--colour", "a terminal has colours unless NO_COLOR is set"},
    {"--no-color", "set NO_COLOR=1 for no colours"},
    {"--trust-remote-code", "no code of a model is run"},
};

std::string with_dashes(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

// The first row of this name for a flag that is in `known`.
const ForeignFlag* find_row(std::string_view name, std::span<const std::string> known) {
  const std::string dashed = with_dashes(name);
  const auto* found =
      std::find_if(std::begin(kForeignFlags), std::end(kForeignFlags), [&](const ForeignFlag& row) {
        return row.name == dashed && std::find(known.begin(), known.end(), row.ours) != known.end();
      });
  return found == std::end(kForeignFlags) ? nullptr : found;
}

}  // namespace

std::string flag_of_others(std::string_view name, std::span<const std::string> known) {
  const ForeignFlag* row = find_row(name, known);
  return row == nullptr ? "" : std::string(row->ours);
}

std::string flag_near_others(std::string_view name, std::span<const std::string> known) {
  if (!name.starts_with("--")) return "";
  std::vector<std::string> theirs;
  for (const ForeignFlag& row : kForeignFlags) {
    if (find_row(row.name, known) != nullptr) theirs.emplace_back(row.name);
  }
  return flag_of_others(nearest(with_dashes(name), theirs), known);
}

std::string why_needless(std::string_view name) {
  const std::string dashed = with_dashes(name);
  for (const NeedlessFlag& row : kNeedlessFlags) {
    if (row.name == dashed) return std::string(row.why);
  }
  return "";
}

std::string same_flag_here(std::string_view name, std::span<const std::string> known) {
  const ForeignFlag* row = find_row(name, known);
  return row == nullptr || !row->same ? "" : std::string(row->ours);
}

std::vector<std::pair<std::string, std::string>> same_flags() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const ForeignFlag& row : kForeignFlags) {
    if (row.same) pairs.emplace_back(row.name, row.ours);
  }
  return pairs;
}

bool is_flag_of_others(std::string_view name) {
  return name.size() > 2 && name[1] != '-' &&
         std::any_of(std::begin(kForeignFlags), std::end(kForeignFlags),
                     [&](const ForeignFlag& row) { return row.name == name; });
}

std::string moved_to(std::string_view command, std::string_view flag) {
  return command == "inspect" && flag == "--runtimes" ? "verify" : "";
}

bool names_model(std::string_view name) {
  return name == "-m" || name == "--model" || name == "--model-path";
}

}  // namespace fp8kv

#include "cli/foreign_flags.h"

#include <algorithm>
#include <iterator>

namespace fp8kv {
namespace {

// Those of llama.cpp, vLLM, SGLang, TensorRT-LLM, transformers, ModelOpt and llm-compressor. Where
// one stands for several of ours, the command decides, or else the first.
struct ForeignFlag {
  std::string_view name;
  std::string_view ours;
};

constexpr ForeignFlag kForeignFlags[] = {
    {"--max-tokens", "--max-new-tokens"},
    {"--max-length", "--max-new-tokens"},
    {"--n-predict", "--max-new-tokens"},
    {"--predict", "--max-new-tokens"},
    {"--temp", "--temperature"},
    {"-t", "--threads"},
    {"--n-threads", "--threads"},
    {"--num-threads", "--threads"},
    {"-f", "--prompts"},
    {"--file", "--prompts"},
    {"--prompt-file", "--prompts"},
    {"--input", "--prompts"},
    {"-b", "--max-batch"},
    {"--batch-size", "--max-batch"},
    {"--batch-size", "--batch"},
    {"--max-num-seqs", "--max-batch"},
    {"--max-running-requests", "--max-batch"},
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
    {"--quantization-param-path", "--scales"},
    {"--scale-file", "--scales"},
    {"--kv-scales", "--scales"},
    {"--tensor-parallel-size", "--tp"},
    {"--tp-size", "--tp"},
    {"--inference-tensor-parallel", "--tp"},
    {"-c", "--seq-len"},
    {"-c", "--context"},
    {"--ctx-size", "--seq-len"},
    {"--ctx-size", "--context"},
    {"--max-model-len", "--seq-len"},
    {"--max-model-len", "--context"},
    {"--seq-len", "--context"},
    {"--context", "--seq-len"},
    {"--max-seq-len", "--seq-len"},
    {"--max-seq-length", "--seq-len"},
    {"--max-sequence-length", "--seq-len"},
    {"--num-samples", "--samples"},
    {"--num-calibration-samples", "--samples"},
    {"--calib-size", "--samples"},
    {"--dataset", "--data"},
    {"--calib-dataset", "--data"},
    {"--text", "--data"},
    {"-f", "--data"},
    {"--file", "--data"},
    {"--output", "--out"},
    {"--output-dir", "--out"},
    {"--output-file", "--out"},
    {"--out-dir", "--out"},
    {"--export-path", "--out"},
    {"--save-path", "--out"},
    {"--target", "--for"},
    {"--runtime", "--for"},
    {"--format", "--for"},
    {"--format", "--to"},
    {"--overwrite", "--force"},
    {"-y", "--force"},
};

}  // namespace

std::string flag_of_others(std::string_view name, std::span<const std::string> known) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const ForeignFlag& row : kForeignFlags) {
    const bool ours_is_there = std::find(known.begin(), known.end(), row.ours) != known.end();
    if (row.name == dashed && ours_is_there) return std::string(row.ours);
  }
  return "";
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

#include "chat/token_defaults.h"

namespace fp8kv {
namespace {

constexpr TokenDefault kLlama[] = {
    {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
constexpr TokenDefault kGpt2[] = {
    {"bos_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}, {"unk_token", "<|endoftext|>"}};
constexpr TokenDefault kGptNeoX[] = {{"bos_token", "<|endoftext|>"},
                                     {"eos_token", "<|endoftext|>"},
                                     {"unk_token", "<|endoftext|>"},
                                     {"pad_token", "<|padding|>"}};
constexpr TokenDefault kGemma[] = {{"bos_token", "<bos>"},
                                   {"eos_token", "<eos>"},
                                   {"unk_token", "<unk>"},
                                   {"pad_token", "<pad>"},
                                   {"mask_token", "<mask>"}};
constexpr TokenDefault kQwen2[] = {
    {"eos_token", "<|endoftext|>"}, {"unk_token", "<|endoftext|>"}, {"pad_token", "<|endoftext|>"}};
constexpr TokenDefault kCohere[] = {
    {"bos_token", "<BOS_TOKEN>"},  {"eos_token", "<|END_OF_TURN_TOKEN|>"},
    {"unk_token", "<UNK>"},        {"pad_token", "<PAD>"},
    {"sep_token", "<SEP>"},        {"cls_token", "<CLS>"},
    {"mask_token", "<MASK_TOKEN>"}};

struct Row {
  std::string_view tokenizer_class;
  std::span<const TokenDefault> tokens;
  bool of_tokenizer_json;  // also if there is a tokenizer.json
};

// Tokenizer classes of models that write text. Source: AutoTokenizer.from_pretrained and
// apply_chat_template of transformers 5.23, on folders that name only the class.
constexpr Row kRows[] = {
    {"LlamaTokenizer", kLlama, false},    {"CodeLlamaTokenizer", kLlama, true},
    {"GPT2Tokenizer", kGpt2, true},       {"CodeGenTokenizer", kGpt2, true},
    {"GPTNeoXTokenizer", kGptNeoX, true}, {"GemmaTokenizer", kGemma, true},
    {"Qwen2Tokenizer", kQwen2, true},     {"Qwen3_5Tokenizer", kQwen2, true},
    {"CohereTokenizer", kCohere, true},
};

}  // namespace

std::span<const TokenDefault> token_defaults(std::string_view tokenizer_class,
                                             bool has_tokenizer_json) {
  if (tokenizer_class.ends_with("Fast")) tokenizer_class.remove_suffix(4);
  for (const Row& row : kRows) {
    if (row.tokenizer_class != tokenizer_class) continue;
    return has_tokenizer_json && !row.of_tokenizer_json ? std::span<const TokenDefault>()
                                                        : row.tokens;
  }
  return {};
}

}  // namespace fp8kv

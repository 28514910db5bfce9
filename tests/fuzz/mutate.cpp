#include "mutate.h"

#include <algorithm>
#include <iterator>

namespace fp8kv::fuzz {
namespace {

constexpr const char* kWords[] = {"{",
                                  "}",
                                  "[",
                                  "]",
                                  ",",
                                  ":",
                                  "\"",
                                  "\\",
                                  "\\u0000",
                                  "\\ud800",
                                  "null",
                                  "true",
                                  "false",
                                  "{}",
                                  "[]",
                                  "\"\"",
                                  "0",
                                  "-0",
                                  "-1",
                                  "1e400",
                                  "1e-400",
                                  "NaN",
                                  "Infinity",
                                  "9223372036854775807",
                                  "18446744073709551616",
                                  "0.1",
                                  "\"a\":",
                                  "\"dtype\":",
                                  "\"shape\":",
                                  "\"data_offsets\":",
                                  "\"F32\"",
                                  "\"BF16\"",
                                  "\"F8_E4M3\"",
                                  "\"F4\"",
                                  "__metadata__",
                                  "weight_map",
                                  "config.json",
                                  "model.safetensors",
                                  "../",
                                  "/",
                                  "k_scale",
                                  "v_scale",
                                  "kv_scale",
                                  "output_scale",
                                  "layers.",
                                  "model.layers.0.self_attn.",
                                  "quantization_config",
                                  "quant_method",
                                  "kv_cache_scheme",
                                  "compressed-tensors",
                                  "modelopt",
                                  "quark",
                                  "fp8",
                                  "num_hidden_layers",
                                  "layers_block_type",
                                  "layer_types",
                                  "full_attention",
                                  "sliding_attention",
                                  "sliding_window",
                                  "text_config",
                                  "model_type",
                                  "num_key_value_heads",
                                  "head_dim",
                                  "rope_scaling",
                                  "rope_parameters",
                                  "tie_word_embeddings",
                                  "is_causal",
                                  "-Infinity",
                                  "architectures",
                                  "scaling_factor",
                                  "float8_e4m3fn",
                                  "float8_e4m3fnuz",
                                  "fp8kv.scales/1",
                                  "tensor",
                                  "head",
                                  "PK\3\4",
                                  "PK\1\2",
                                  "PK\5\6",
                                  "PK\6\6",
                                  "PK\6\7",
                                  "\x93NUMPY",
                                  "'descr': '<f4'",
                                  "'fortran_order': True",
                                  "merges",
                                  "vocab",
                                  "added_tokens",
                                  "Sequence",
                                  "Split",
                                  "ByteLevel",
                                  "(?i:",
                                  "\\p{L}",
                                  "(?!\\S)",
                                  "{1,3}",
                                  "\xC3\xB6",
                                  "\xF0\x9F\x99\x82",
                                  "\xFF",
                                  "\xE2\x96\x81"};

constexpr const char* kNumbers[] = {"0",     "1",          "-1",         "2",
                                    "127",   "128",        "255",        "256",
                                    "65535", "4294967295", "4294967296", "9223372036854775807",
                                    "1e308", "0.5",        "1e-45"};

size_t place(const std::string& input, Rng& rng) {
  return input.empty() ? 0 : rng.next() % (input.size() + 1);
}

// A random length, usually a short one.
size_t length(size_t most, Rng& rng) {
  if (most == 0) return 0;
  const size_t limit = rng.next() % 4 ? std::min<size_t>(most, 16) : most;
  return 1 + rng.next() % limit;
}

void change_byte(std::string& input, Rng& rng) {
  if (input.empty()) return;
  char& byte = input[rng.next() % input.size()];
  const uint64_t kind = rng.next() % 3;
  if (kind == 0) byte = static_cast<char>(byte ^ (1 << rng.next() % 8));
  if (kind == 1) byte = static_cast<char>(rng.next());
  if (kind == 2) byte = static_cast<char>(byte + static_cast<int>(rng.next() % 9) - 4);
}

// Writes a little-endian number at the limits of 1, 2, 4 or 8 bytes, or near the input's size.
void write_number(std::string& input, Rng& rng) {
  const size_t bytes = size_t{1} << rng.next() % 4;
  if (input.size() < bytes) return;
  const uint64_t edges[] = {0,
                            1,
                            0x7F,
                            0x80,
                            0xFF,
                            0x7FFF,
                            0x8000,
                            0xFFFF,
                            0x7FFFFFFF,
                            0x80000000,
                            0xFFFFFFFF,
                            ~uint64_t{0} >> 1,
                            ~uint64_t{0},
                            input.size()};
  const uint64_t value = edges[rng.next() % std::size(edges)] + rng.next() % 3 - 1;
  const size_t at = rng.next() % (input.size() - bytes + 1);
  for (size_t i = 0; i < bytes; ++i) input[at + i] = static_cast<char>(value >> (8 * i));
}

void write_decimal(std::string& input, Rng& rng) {
  const size_t begin = input.find_first_of("0123456789", place(input, rng));
  if (begin == input.npos) return;
  const size_t end = std::min(input.find_first_not_of("0123456789.eE+-", begin), input.size());
  input.replace(begin, end - begin, kNumbers[rng.next() % std::size(kNumbers)]);
}

void remove_piece(std::string& input, Rng& rng) {
  const size_t at = place(input, rng);
  input.erase(at, length(input.size() - at, rng));
}

void repeat_piece(std::string& input, Rng& rng) {
  const size_t at = place(input, rng);
  const std::string piece = input.substr(at, length(input.size() - at, rng));
  const size_t times = rng.next() % 8 == 0 ? 100 : 1;
  std::string all;
  for (size_t i = 0; i < times; ++i) all += piece;
  input.insert(place(input, rng), all);
}

void take_piece(std::string& input, const std::string& other, Rng& rng) {
  const size_t from = place(other, rng);
  const std::string piece = other.substr(from, length(other.size() - from, rng));
  const size_t at = place(input, rng);
  if (rng.next() % 2) {
    input.insert(at, piece);
  } else {
    input.replace(at, std::min(piece.size(), input.size() - at), piece);
  }
}

}  // namespace

std::string mutated(std::string input, const std::string& other, Rng& rng) {
  const uint64_t changes = 1 + rng.next() % (rng.next() % 2 ? 2 : 8);
  for (uint64_t i = 0; i < changes; ++i) {
    switch (rng.next() % 8) {
      case 0:
        change_byte(input, rng);
        break;
      case 1:
        write_number(input, rng);
        break;
      case 2:
        write_decimal(input, rng);
        break;
      case 3:
        remove_piece(input, rng);
        break;
      case 4:
        repeat_piece(input, rng);
        break;
      case 5:
        take_piece(input, other, rng);
        break;
      default:
        input.insert(place(input, rng), kWords[rng.next() % std::size(kWords)]);
    }
  }
  return input;
}

}  // namespace fp8kv::fuzz

#include "quantize/weights_block.h"

#include "json/json.h"
#include "scales/write/quant_block.h"

namespace fp8kv {
namespace {

constexpr int64_t kInputGroup = 128;  // for the strategy "group"

// Writes the arguments for quantisation to 8-bit floats, sorted by name.
void write_arguments(JsonWriter& out, const char* strategy, bool dynamic, const Fp8Scheme* block) {
  out.begin_object();
  if (block != nullptr) {
    const int64_t sides[] = {block->block_rows, block->block_columns};
    out.member("block_structure", std::span<const int64_t>(sides));
  }
  out.member("dynamic", dynamic);
  if (std::string_view(strategy) == "group") {
    out.member("group_size", kInputGroup);
  } else {
    out.key("group_size").null();
  }
  out.member("num_bits", 8).member("strategy", strategy);
  out.member("symmetric", true).member("type", "float").end_object();
}

}  // namespace

std::string weights_block(const Fp8Scheme& scheme, std::span<const std::string> ignore) {
  const bool blocks = std::string_view(scheme.weights) == "block";
  JsonWriter out;
  out.begin_object().key("config_groups").begin_object().key("group_0").begin_object();
  out.member("format", "float-quantized");
  out.key("input_activations");
  write_arguments(out, scheme.inputs, !scheme.static_inputs, nullptr);
  out.key("output_activations").null();
  out.key("targets").begin_array().value("Linear").end_array().key("weights");
  write_arguments(out, scheme.weights, false, blocks ? &scheme : nullptr);
  out.end_object().end_object();
  out.member("format", "float-quantized").key("global_compression_ratio").null();
  out.member("ignore", ignore).key("kv_cache_scheme").null();
  out.member("quant_method", "compressed-tensors");
  out.member("quantization_status", "compressed");
  return indented(out.end_object().text());
}

}  // namespace fp8kv

#include "checkpoint/quant_config.h"

#include "base/error.h"
#include "checkpoint/quant_methods.h"
#include "config/values/language_config.h"

namespace fp8kv {
namespace {

void read_block(const Json& block, const std::string& key, QuantConfig& out) {
  if (!block.is_object()) {
    fail(block.where(), ": is ", block.brief(), ", expected an object");
  }
  out.key = key;
  out.block = block;
  out.quant_method = block.get_string("quant_method", "");
  out.method = method_of(out);
}

// Looks for the block in wrapped language models, at any depth.
std::optional<Json> wrapped_block(const Json& config) {
  for (auto inner = wrapped_config(config); inner; inner = wrapped_config(*inner)) {
    if (const auto block = inner->find(kQuantBlock)) return block;
  }
  return std::nullopt;
}

void read_torch_dtype(const Json& config, KvConfig& out) {
  const auto named = config.find("kv_cache_torch_dtype");
  if (!named) {
    out.tgi_script = config.get_string("kv_cache_dtype", "").starts_with("float8_e4m3");
    return;
  }
  out.torch_dtype = named->as_string();
  if (out.torch_dtype == "float8_e4m3fn") return;
  out.format = KvFormat::e4m3fnuz;
  if (out.torch_dtype == "float8_e4m3fnuz") return;
  fail(named->where(), ": is ", quote(out.torch_dtype),
       ", expected 'float8_e4m3fn' or 'float8_e4m3fnuz'");
}

}  // namespace

QuantConfig read_quant_config(const Json& config, const std::optional<Json>& hf_quant) {
  QuantConfig out;
  out.hf_quant = hf_quant;
  out.file = config.where();
  if (const auto block = config.find(kQuantBlock)) {
    read_block(*block, kQuantBlock, out);
  } else if (const auto old = config.find(kOldQuantBlock)) {
    read_block(*old, kOldQuantBlock, out);
  } else if (const auto inner = wrapped_block(config)) {
    // Not every runtime reads this block, and inject does not write there.
    read_block(*inner, inner->where().substr(config.where().size() + 2), out);
    out.method = QuantMethod::other;
  } else if (hf_quant) {
    out.method = QuantMethod::modelopt;
  }
  return out;
}

QuantConfig read_quant_config(const Checkpoint& checkpoint) {
  return read_quant_config(checkpoint.config(), checkpoint.hf_quant());
}

std::string quantised_weights(const QuantConfig& quant, std::span<const std::string> modules) {
  return quant.method == QuantMethod::none ? "" : row_of(quant.method).weights(quant, modules);
}

KvConfig read_kv_config(const Json& config, const std::optional<Json>& hf_quant) {
  const QuantConfig quant = read_quant_config(config, hf_quant);
  KvConfig out;
  out.quant_method = quant.quant_method;
  out.key = quant.key;
  read_torch_dtype(config, out);
  if (hf_quant) read_modelopt_json(*hf_quant, hf_quant->where(), out);
  const bool from_file = out.method == QuantMethod::modelopt;
  if (quant.block) row_of(quant.method).cache(quant, out);
  if (from_file && out.method != QuantMethod::modelopt) {
    throw Error(cat(hf_quant->where(), ": is ModelOpt's, but ", config.where(), ": ", out.key,
                    ": has scales for the KV cache by quant_method ", quote(out.quant_method)),
                "the two are of different checkpoints: remove the one that is not this one's");
  }
  return out;
}

}  // namespace fp8kv

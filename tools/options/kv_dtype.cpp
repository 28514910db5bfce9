#include "options/kv_dtype.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "core/model/packed_formats.h"

namespace fp8kv {
namespace {

struct Spelling {
  CacheType type;
  std::vector<std::string> names;  // the canonical one first
};

const std::vector<Spelling>& rows() {
  static const std::vector<Spelling> table = {
      {DType::f32, {"float32", "fp32"}},
      {DType::f16, {"float16", "fp16", "half"}},
      {DType::bf16, {"bfloat16", "bf16"}},
      {KvFormat::ds_mla, {"fp8_ds_mla"}},
      {DType::f8_e4m3, {"fp8_e4m3", "fp8", "fp8_e4m3fn", "float8_e4m3fn"}},
      {DType::f8_e4m3fnuz, {"fp8_e4m3fnuz", "float8_e4m3fnuz"}},
      {DType::f8_e5m2, {"fp8_e5m2", "float8_e5m2"}},
      {KvFormat::int8_per_token_head, {"int8_per_token_head"}},
      {KvFormat::fp8_per_token_head, {"fp8_per_token_head"}},
      {{KvFormat::e4m3fn, KvFormat::int4_values}, {"turboquant_k8v4"}},
      {KvFormat::nvfp4, {"nvfp4"}},
      {KvFormat::nvfp4_4over6, {"nvfp4_4over6"}},
      {KvFormat::int4_per_token_head, {"int4_per_token_head"}},
  };
  return table;
}

}  // namespace

std::vector<std::string> kv_dtype_names() {
  std::vector<std::string> names = {"auto", "fp8"};
  for (const Spelling& row : rows()) names.push_back(row.names[0]);
  return names;
}

namespace {

std::optional<CacheType> with_known(const std::string& name, const std::vector<std::string>& known,
                                    const std::string& help) {
  const auto same = [&](std::string_view spelling) {
    return std::equal(
        spelling.begin(), spelling.end(), name.begin(), name.end(),
        [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  };
  if (same("auto")) return std::nullopt;
  for (const Spelling& row : rows()) {
    for (const std::string& spelling : row.names) {
      if (same(spelling)) return row.type;
    }
  }
  throw Error(cat(quote(name), " is not one of: ", join(known, ", "), did_you_mean(name, known)),
              help, ErrorKind::usage);
}

}  // namespace

std::optional<CacheType> kv_dtype_from_name(const std::string& name) {
  return with_known(name, kv_dtype_names(), "see 'fp8kv run --help'");
}

std::string kv_dtype_name(const CacheType& type) {
  for (const Spelling& row : rows()) {
    if (row.type == type) return row.names[0];
  }
  return format_name(type.k);
}

std::vector<std::string> plan_dtype_names() {
  std::vector<std::string> names = kv_dtype_names();
  for (const PackedFormat& format : packed_formats()) names.emplace_back(format.name);
  return names;
}

std::string plan_dtype_name(const std::string& name) {
  if (find_packed_format(name)) return name;
  const auto type = with_known(name, plan_dtype_names(), "see 'fp8kv plan --help'");
  return type ? kv_dtype_name(*type) : "auto";
}

std::vector<std::string> self_scaling_dtype_names() {
  std::vector<std::string> names;
  for (const Spelling& row : rows()) {
    const bool makes = !scales_for(row.type) && !is_compute_dtype(row.type) &&
                       !(kv_spec(row.type.k).in_elements() && kv_spec(row.type.v).in_elements());
    if (makes) names.push_back(row.names[0]);
  }
  for (const PackedFormat& format : packed_formats()) names.emplace_back(format.name);
  return names;
}

bool makes_own_scales(const std::string& name) {
  const std::vector<std::string> names = self_scaling_dtype_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<CacheType> kv_dtypes(const ModelDescription& model) {
  std::vector<CacheType> types;
  for (const Spelling& row : rows()) {
    if (can_hold(model, row.type)) types.push_back(row.type);
  }
  return types;
}

}  // namespace fp8kv

#include "quant/quant_settings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "base/error.h"
#include "quant/module_pattern.h"

namespace fp8kv {
namespace {

constexpr int64_t kLargestBlock = int64_t(1) << 20;

// The keys under which configs list modules that stay unquantised.
constexpr const char* kLists[] = {"ignore", "ignored_layers", "modules_to_not_convert",
                                  "exclude_modules", "exclude"};
// If one of these keys is present, some other modules may be unquantised too.
constexpr const char* kChoices[] = {"modules_in_block_to_quantize", "dynamic", "extra_config",
                                    "layer_quant_config", "quantized_layers"};

int64_t block_side(const Json& sides, size_t index) {
  const int64_t side = sides[index].as_int();
  if (side > 0 && side <= kLargestBlock) return side;
  fail(sides.where(), ": is ", sides.brief(), ", expected two numbers above 0");
}

void read_block(const Json& sides, QuantSettings& out) {
  if (!sides.is_array() || sides.size() != 2) {
    fail(sides.where(), ": is ", sides.brief(), ", expected two numbers");
  }
  out.block_rows = block_side(sides, 0);
  out.block_columns = block_side(sides, 1);
}

// Returns 0 if there is no group size, as for one scale per row (-1 or null).
int64_t group_size(const Json& object) {
  const auto size = object.find("group_size");
  if (!size || !size->is_number()) return 0;
  const int64_t columns = std::max<int64_t>(size->as_int(), 0);
  if (columns <= kLargestBlock) return columns;
  fail(size->where(), ": is ", columns, ", expected at most ", kLargestBlock);
}

// Reads the groups of compressed-tensors. all_others holds if all of them target "Linear".
void read_groups(const Json& groups, QuantSettings& out) {
  out.all_others = groups.size() > 0;
  std::set<int64_t> sizes;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Json group = groups.value(i);
    if (!group.is_object()) continue;
    const auto weights = group.find("weights");
    const auto sides = weights ? weights->find("block_structure") : std::nullopt;
    if (sides && sides->is_array()) read_block(*sides, out);
    if (weights) sizes.insert(group_size(*weights));
    const auto targets = group.find("targets");
    out.all_others &= weights && targets && targets->size() == 1 && (*targets)[0].is_string() &&
                      (*targets)[0].as_string() == "Linear";
  }
  if (sizes.size() == 1) out.group_columns = *sizes.begin();
}

void read_list(const Json& block, QuantSettings& out) {
  for (const char* const key : kLists) {
    const auto list = block.find(key);
    if (!list || !list->is_array() || list->size() == 0) continue;
    for (size_t i = 0; i < list->size(); ++i) out.left_out.push_back((*list)[i].as_string());
    out.left_out_at = list->where();
    return;
  }
}

bool has_choices(const Json& block) {
  return std::any_of(std::begin(kChoices), std::end(kChoices),
                     [&](const char* key) { return block.has(key); });
}

// Whether `text` matches a pattern in which "*" stands for any text.
bool fits(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (;;) {
    const size_t next = pattern.find('*');
    const std::string_view part = pattern.substr(0, next);
    if (next == pattern.npos) return text.ends_with(part);
    const size_t at = text.find(part);
    if (at == text.npos) return false;
    text.remove_prefix(at + part.size());
    pattern.remove_prefix(next + 1);
  }
}

// Whether an entry names the module: its whole name, its last parts, one of its parents, or a
// pattern of these.
bool names(std::string_view entry, std::string_view module) {
  for (std::string_view name = module; !name.empty();) {
    for (std::string_view rest = name;;) {
      if (fits(entry, rest)) return true;
      const size_t dot = rest.find('.');
      if (dot == rest.npos) break;
      rest.remove_prefix(dot + 1);
    }
    const size_t last = name.rfind('.');
    if (last == name.npos) break;
    name = name.substr(0, last);
  }
  return false;
}

}  // namespace

QuantSettings read_quant_settings(const std::optional<Json>& block,
                                  const std::optional<Json>& hf_quant) {
  QuantSettings out;
  if (hf_quant) {
    if (const auto inner = hf_quant->find("quantization")) read_list(*inner, out);
  }
  if (!block) return out;
  out.quant_method = block->get_string("quant_method", "");
  if (const auto sides = block->find("weight_block_size")) read_block(*sides, out);
  out.group_columns = group_size(*block);
  out.plain_zeros = block->get_string("checkpoint_format", "") == "gptq_v2";
  if (out.left_out.empty()) read_list(*block, out);
  if (const auto groups = block->find("config_groups")) {
    if (groups->is_object()) read_groups(*groups, out);
    if (block->get_string("format", "") == "dense") out.all_others = false;
  } else {
    constexpr const char* kMethods[] = {"fp8", "awq", "gptq", "fbgemm_fp8"};
    out.all_others =
        std::find(std::begin(kMethods), std::end(kMethods), out.quant_method) != std::end(kMethods);
  }
  if (has_choices(*block)) out.all_others = false;
  return out;
}

LeftOut left_out(const QuantSettings& settings, const std::string& module) {
  bool unclear = false;
  for (const std::string& entry : settings.left_out) {
    const auto matches = pattern_matches(entry, module);
    if (!matches) unclear = true;
    if (matches.value_or(false) || entry == "Linear" || names(entry, module)) return LeftOut::yes;
  }
  return unclear ? LeftOut::unclear : LeftOut::no;
}

}  // namespace fp8kv

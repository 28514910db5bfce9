#include "scales/draft_json.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr const char* kDrafts = "draft_layers";

void write_row(JsonWriter& out, const char* name, const std::vector<float>& values) {
  out.member(name, std::span<const float>(values));
}

std::vector<float> read_row(const Json& values) {
  if (!values.is_array() || values.size() == 0) {
    fail(values.where(), ": is ", values.brief(), ", expected an array of numbers");
  }
  std::vector<float> row;
  for (size_t i = 0; i < values.size(); ++i) {
    row.push_back(static_cast<float>(values[i].as_double()));
  }
  return row;
}

std::vector<float> read_maxima(const Json& draft, std::string_view name) {
  const Json values = draft.at(std::string(name));
  std::vector<float> maxima = read_row(values);
  const bool wrong = std::any_of(maxima.begin(), maxima.end(),
                                 [](float amax) { return !std::isfinite(amax) || amax < 0; });
  if (wrong) fail(values.where(), ": has a number that is no finite maximum of magnitudes");
  return maxima;
}

DraftScales read_draft(const Json& draft) {
  DraftScales out{draft.at("layer").as_string(), {}, {}};
  if (out.layer.empty()) {
    fail(draft.where(), ".layer: is empty, expected the name of a layer");
  }
  out.scales = {read_row(draft.at("k_scale")), read_row(draft.at("v_scale"))};
  if (!draft.has("k_amax")) return out;
  out.amax = {read_maxima(draft, "k_amax"), read_maxima(draft, "v_amax"),
              read_maxima(draft, "q_amax")};
  const size_t heads = out.amax.k.size();
  if (out.amax.v.size() == heads && out.amax.q.size() == heads) return out;
  fail(draft.where(), ": k_amax, v_amax and q_amax have different numbers of heads");
}

}  // namespace

void write_drafts(JsonWriter& out, const KvScales& scales) {
  if (scales.drafts.empty()) return;
  out.key(kDrafts).begin_array();
  for (const DraftScales& draft : scales.drafts) {
    out.begin_object().member("layer", draft.layer);
    write_row(out, "k_scale", draft.scales.k);
    write_row(out, "v_scale", draft.scales.v);
    if (!draft.amax.k.empty()) {
      write_row(out, "k_amax", draft.amax.k);
      write_row(out, "v_amax", draft.amax.v);
      write_row(out, "q_amax", draft.amax.q);
    }
    out.end_object();
  }
  out.end_array();
}

void read_drafts(const Json& extension, KvScales& out) {
  const auto drafts = extension.find(kDrafts);
  if (!drafts) return;
  if (!drafts->is_array()) {
    fail(drafts->where(), ": is ", drafts->brief(), ", expected an array");
  }
  for (size_t i = 0; i < drafts->size(); ++i) {
    DraftScales draft = read_draft((*drafts)[i]);
    const bool twice = std::any_of(out.drafts.begin(), out.drafts.end(),
                                   [&](const auto& each) { return each.layer == draft.layer; });
    if (twice) fail((*drafts)[i].where(), ": the layer ", quote(draft.layer), " is there twice");
    out.drafts.push_back(std::move(draft));
  }
}

}  // namespace fp8kv

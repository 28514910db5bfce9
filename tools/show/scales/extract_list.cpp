#include "show/scales/extract_list.h"

#include <cmath>

#include "inputs/scale_source.h"
#include "json/json.h"
#include "show/output.h"
#include "show/scales/scales_text.h"

namespace fp8kv {
namespace {

const char* use_of(ScaleOf of) {
  switch (of) {
    case ScaleOf::k:
      return "K";
    case ScaleOf::v:
      return "V";
    case ScaleOf::both:
      return "K and V";
    case ScaleOf::q:
      return "Q";
  }
  return "";
}

std::string values_text(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) text += cat(text.empty() ? "" : " ", value);
  return text.empty() ? "-" : text;
}

// The scales as JSON. NaN and infinity become strings, because JSON has no such numbers.
void values_json(JsonWriter& json, const std::vector<float>& values) {
  json.key("values").begin_array();
  for (const float value : values) {
    std::isfinite(value) ? json.value(value) : json.value(cat(value));
  }
  json.end_array();
}

void form_json(JsonWriter& json, DType dtype, const Shape& shape) {
  json.member("dtype", dtype_name(dtype)).key("shape");
  std::vector<int64_t> dims;
  for (size_t i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  json.value(std::span<const int64_t>(dims));
}

// The tensors as JSON. Draft layers have no number here: their tensors' names identify them.
void tensors_json(JsonWriter& json, const std::vector<ScaleTensor>& tensors, bool drafts) {
  json.begin_array();
  for (const ScaleTensor& tensor : tensors) {
    json.begin_object().member("name", plain(tensor.name));
    json.member("dialect", tensor.dialect_name).member("of", use_of(tensor.of));
    if (!drafts) json.member("layer", tensor.layer);
    form_json(json, tensor.dtype, tensor.shape);
    values_json(json, tensor.values);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string list_text(const FoundScales& found) {
  Table table({"tensor", "dialect", "of", "dtype", "shape", "value"},
              {true, true, true, true, true, true});
  for (const std::vector<ScaleTensor>* tensors :
       {&found.tensors, &found.draft_tensors, &found.q_tensors}) {
    for (const ScaleTensor& tensor : *tensors) {
      table.add({plain(tensor.name), plain(tensor.dialect_name), use_of(tensor.of),
                 std::string(dtype_name(tensor.dtype)), tensor.shape.text(),
                 values_text(tensor.values)});
    }
  }
  for (const IgnoredTensor& tensor : found.ignored) {
    table.add({plain(tensor.name), cat("ignored: ", tensor.reason), "-",
               std::string(dtype_name(tensor.dtype)), tensor.shape.text(),
               values_text(tensor.values)});
  }
  return table.text();
}

std::string list_json(const std::filesystem::path& source, const FoundScales& found) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.extract.list/1");
  json.member("source", utf8_name(source.string())).member("form", found.dialect);
  tensors_json(json.key("tensors"), found.tensors, false);
  if (!found.draft_tensors.empty()) {
    tensors_json(json.key("draft_tensors"), found.draft_tensors, true);
  }
  if (!found.q_tensors.empty()) tensors_json(json.key("q_tensors"), found.q_tensors, false);
  json.key("ignored").begin_array();
  for (const IgnoredTensor& tensor : found.ignored) {
    json.begin_object().member("name", plain(tensor.name)).member("reason", tensor.reason);
    form_json(json, tensor.dtype, tensor.shape);
    values_json(json, tensor.values);
    json.end_object();
  }
  json.end_array();
  diagnoses_json(json, found.diagnoses);
  if (found.refusal) {
    json.key("refusal").begin_object().member("message", std::string(found.refusal->what()));
    json.member("help", found.refusal->help()).end_object();
  }
  return json.end_object().text();
}

}  // namespace fp8kv

#include "show/models/tensor_list.h"

#include "base/text.h"
#include "json/json.h"
#include "show/output.h"

namespace fp8kv {

std::string tensor_list_text(const SafetensorsHeader& header) {
  Table table({"tensor", "dtype", "shape", "bytes"}, {true, true, true});
  for (const TensorEntry& entry : header.tensors) {
    table.add({plain(entry.name), std::string(dtype_name(entry.dtype)), entry.shape.text(),
               grouped(entry.end - entry.begin)});
  }
  return table.text();
}

std::string tensor_list_json(const std::filesystem::path& path, const SafetensorsHeader& header) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "safetensors");
  json.member("file", utf8_name(path.string())).key("tensors").begin_array();
  for (const TensorEntry& entry : header.tensors) {
    json.begin_object().member("name", entry.name).member("dtype", dtype_name(entry.dtype));
    json.key("shape").begin_array();
    for (size_t i = 0; i < entry.shape.rank(); ++i) json.value(entry.shape[i]);
    json.end_array().member("bytes", entry.end - entry.begin);
    json.end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace fp8kv

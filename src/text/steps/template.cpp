#include "text/steps/template.h"

#include "base/error.h"
#include "text/models/parts.h"
#include "text/steps/shared_steps.h"

namespace fp8kv {
namespace {

std::vector<int32_t> special_ids(const Json& token, const Json& special_tokens, int32_t end_id) {
  check_keys(token, {"id", "type_id"});
  const Json name = token.at("id");
  const auto entry = special_tokens.find(name.as_string());
  if (!entry) {
    fail(name.where(), ": ", quote(name.as_string()), " is not among special_tokens");
  }
  check_keys(*entry, {"id", "ids", "tokens"});
  const Json listed = array_at(*entry, "ids");
  std::vector<int32_t> ids;
  for (size_t i = 0; i < listed.size(); ++i) {
    const int64_t id = listed[i].as_int();
    if (id < 0 || id >= end_id) {
      fail(listed[i].where(), ": is ", id, ", expected an id below ", end_id);
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

void append(std::vector<int32_t>& to, const std::vector<int32_t>& ids) {
  to.insert(to.end(), ids.begin(), ids.end());
}

// Reads ["<s>", 0].
int32_t named_id(const Json& json, int32_t end_id) {
  if (!json.is_array() || json.size() != 2) {
    fail(json.where(), ": is ", json.brief(), ", expected a token and its id");
  }
  const int64_t id = json[1].as_int();
  if (id < 0 || id >= end_id) fail(json[1].where(), ": is ", id, ", expected an id below ", end_id);
  return static_cast<int32_t>(id);
}

// Reads BertProcessing and RobertaProcessing. Their other members only concern offsets.
Template class_and_separator(const Json& json, int32_t end_id) {
  check_keys(json, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
  return {{named_id(json.at("cls"), end_id)}, {named_id(json.at("sep"), end_id)}};
}

Template template_processing(const Json& json, int32_t end_id) {
  check_keys(json, {"type", "single", "pair", "special_tokens"});
  const Json single = array_at(json, "single");
  const Json special_tokens = json.at("special_tokens");
  Template made;
  size_t texts = 0;
  for (size_t i = 0; i < single.size(); ++i) {
    const Json piece = single[i];
    check_keys(piece, {"Sequence", "SpecialToken"});
    if (const auto token = piece.find("SpecialToken")) {
      append(texts == 0 ? made.prefix : made.suffix, special_ids(*token, special_tokens, end_id));
      continue;
    }
    const Json sequence = piece.at("Sequence");
    check_keys(sequence, {"id", "type_id"});
    const Json id = sequence.at("id");
    if (id.as_string() != "A") {
      fail(id.where(), ": is ", quote(id.as_string()), ", but a single text is 'A'");
    }
    ++texts;
  }
  if (texts != 1) {
    fail(single.where(), ": has the text ", count_of(texts, "time"), ", expected once");
  }
  return made;
}

}  // namespace

Template Template::from_json(const std::optional<Json>& post_processor, int32_t end_id) {
  if (!post_processor) return {};
  const std::string type = post_processor->at("type").as_string();
  if (type == "TemplateProcessing") return template_processing(*post_processor, end_id);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return class_and_separator(*post_processor, end_id);
  }
  if (type == "ByteLevel") {  // changes offsets only, which fp8kv does not report
    check_byte_level(*post_processor);
    return {};
  }
  if (type != "Sequence") {
    fail_unsupported(
        *post_processor, type,
        {"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"});
  }
  check_keys(*post_processor, {"type", "processors"});
  const Json processors = array_at(*post_processor, "processors");
  Template made;
  for (size_t i = 0; i < processors.size(); ++i) {
    Template outer = from_json(processors[i], end_id);
    append(outer.prefix, made.prefix);
    append(made.suffix, outer.suffix);
    made.prefix = std::move(outer.prefix);
  }
  return made;
}

}  // namespace fp8kv

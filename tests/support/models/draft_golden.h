// The random models of tests/golden/make_drafts.py: each has a draft layer, and the maxima of its
// cache.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "json/json.h"
#include "support/models/family_model.h"
#include "support/places.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

inline constexpr std::array<const char*, 6> kDraftGoldens = {
    "deepseek-v3", "glm4-moe", "glm4-moe-lite", "qwen3-next", "qwen3.5", "qwen3.5-moe"};

// The golden's ids, which are also written as the text "d.jsonl".
inline std::vector<int32_t> written_ids(const TempDir& folder, const Json& golden) {
  const Json list = golden.at("ids");
  std::vector<int32_t> ids;
  std::string text;
  for (size_t i = 0; i < list.size(); ++i) {
    ids.push_back(static_cast<int32_t>(list[i].as_int()));
    text += (i == 0 ? "" : ", ") + std::to_string(ids.back());
  }
  folder.write("d.jsonl", "{\"input_ids\": [" + text + "]}\n");
  return ids;
}

struct DraftGolden {
  explicit DraftGolden(const std::string& name)
      : golden(Json::read(source_dir() / "tests/golden/drafts" / (name + ".json"))),
        checkpoint(write_golden_model(folder / "m", golden)),
        layer(golden.at("draft").as_string()),
        ids(written_ids(folder, golden)) {}

  TempDir folder;  // has the model "m" and the text "d.jsonl"
  Json golden;
  Checkpoint checkpoint;
  std::string layer;
  std::vector<int32_t> ids;
};

}  // namespace fp8kv::test

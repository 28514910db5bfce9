// The random drafters of tests/golden/make_drafters.py, with their targets, and the maxima of what
// they cache.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "json/json.h"
#include "support/models/draft_golden.h"
#include "support/models/family_model.h"
#include "support/places.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

inline constexpr std::array<const char*, 4> kDrafterGoldens = {"flat", "speculators", "wider",
                                                               "raw-tokens"};

struct DrafterGolden {
  explicit DrafterGolden(const std::string& name)
      : golden(Json::read(source_dir() / "tests/golden/drafters" / (name + ".json"))),
        drafter(write_golden_model(folder / "drafter", golden)),
        target(
            write_golden_model(folder / "target", family_golden(golden.at("target").as_string()))),
        ids(written_ids(folder, golden)) {}

  TempDir folder;  // has the models "drafter" and "target", and the text "d.jsonl"
  Json golden;
  Checkpoint drafter;
  Checkpoint target;
  std::vector<int32_t> ids;
};

}  // namespace fp8kv::test

// The two spellings of a rope in config.json: rope_scaling up to transformers 4, and
// rope_parameters from 5 on. The members of a rope are read elsewhere.
#pragma once

#include <array>
#include <optional>

#include "config/families/rope_style.h"
#include "json/json.h"

namespace fp8kv {

// The member that names the type of a rope.
std::optional<Json> type_of(const Json& scaling);

// The object with the scaling of the rope, in either spelling; nullopt if there is none.
std::optional<Json> find_scaling(const Json& text);

// The first member whose value is an object.
std::optional<Json> find_object_in(const Json& object);

// Throws if the two spellings contradict each other.
void check_spellings(const Json& text, const RopeStyle& style);

// Joins the rope of full_attention in rope_parameters with the rope_scaling beside it, like
// transformers 5.24. Throws if the two contradict each other.
class JoinedRope {
 public:
  JoinedRope(const Json& full, const Json& more);

  Json rope() { return rope_.noting(reads_); }
  // Marks those members of both objects as read that were read through rope().
  void note_reads() const;

 private:
  std::array<Json, 2> parts_;
  Json rope_;
  JsonReads reads_;
};

}  // namespace fp8kv

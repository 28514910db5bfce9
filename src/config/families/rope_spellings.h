// The spellings of a rope in config.json: rope_scaling up to transformers 4, rope_parameters from 5
// on. Which members a rope has is no part of this.
#pragma once

#include <array>
#include <optional>

#include "config/families/rope_style.h"
#include "json/json.h"

namespace fp8kv {

// The member that names the type of a rope.
std::optional<Json> type_of(const Json& scaling);

// The object with what is not plain, in either spelling; nullopt if there is none.
std::optional<Json> find_scaling(const Json& text);

// The first member that is an object.
std::optional<Json> find_object_in(const Json& object);

// Throws where the two spellings contradict each other.
void check_spellings(const Json& text, const RopeStyle& style);

// The rope of full_attention in rope_parameters with the rope_scaling beside it, whose members
// transformers 5.24 adds. Throws where the two contradict each other.
class JoinedRope {
 public:
  JoinedRope(const Json& full, const Json& more);

  Json rope() { return rope_.noting(reads_); }
  // Notes of the members of both objects which of them were read in rope().
  void note_reads() const;

 private:
  std::array<Json, 2> parts_;
  Json rope_;
  JsonReads reads_;
};

}  // namespace fp8kv

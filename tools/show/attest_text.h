// An attestation for people: the answer first, then the table that it stands on.
#pragma once

#include <string>

#include "attest/attest.h"

namespace fp8kv {

// The server and how it was asked.
struct AttestedServer {
  std::string address;
  std::string runtime;  // "vLLM"
  std::string version;  // "" where it does not tell
  std::string model;
  bool decoded = false;  // tokens that it generated were judged
  double level = 0.01;
};

// One line: "127.0.0.1:8000 computes with these scales".
std::string attest_answer(const AttestReport& report, const AttestedServer& server);
std::string attest_text(const AttestReport& report, const AttestedServer& server);

}  // namespace fp8kv

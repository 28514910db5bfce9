// Addresses over TLS: the test hub behind a proxy with a certificate for 127.0.0.1.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "support/says.h"
#include "support/skip.h"
#include "support/workplaces/hub_place.h"

namespace fp8kv {
namespace {

const std::string kCertificate = (test::source_dir() / "tests/support/tls_test.pem").string();

using test::says;

// Whether the program reads addresses, and Python is there for the proxy.
bool can_run() {
  if (!test::reads_addresses()) return false;
  const test::CliResult python =
      test::run_cli({"python3", "-c", "import ssl"}, {.program = "/usr/bin/env"});
  if (python.exit_code == 0) return true;
  test::skip("python3 with its module ssl is not there");
  return false;
}

// Variables that name the trusted certificates. The first one that is not empty counts.
std::vector<std::string> trusting(const std::string& variable) {
  std::vector<std::string> all;
  for (const std::string_view name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}) {
    all.push_back(cat(name, "=", name == variable ? kCertificate : ""));
  }
  return all;
}

// Runs `extract` on an address with TLS_PORT in it.
test::CliResult extract(const test::HubPlace& place, const std::string& address,
                        const std::vector<std::string>& environment) {
  const std::string endpoint = place.server.endpoint();
  test::CliSetup setup = place.setup(environment);
  setup.program = "/usr/bin/env";
  return test::run_cli({"python3", (test::source_dir() / "tests/support/behind_tls.py").string(),
                        kCertificate, endpoint.substr(endpoint.rfind(':') + 1),
                        test::built_program().string(), "extract", address},
                       setup);
}

}  // namespace

TEST_CASE("cli address tls: a folder is read from a server with a trusted certificate") {
  if (!can_run()) return;
  const test::HubPlace place;
  for (const char* variable : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    CAPTURE(variable);
    const test::CliResult result =
        extract(place, "https://127.0.0.1:TLS_PORT/org/big", trusting(variable));
    CHECK_MESSAGE(result.exit_code == 0, result.err);
    CHECK(result.out == place.local());
  }
}

TEST_CASE("cli address tls: a certificate without an authority, or for another host, is refused") {
  if (!can_run()) return;
  const test::HubPlace place;
  const test::CliResult unknown =
      extract(place, "https://127.0.0.1:TLS_PORT/org/big", trusting("none"));
  CHECK(unknown.exit_code == 5);
  CHECK_MESSAGE(says(unknown.err, "the certificate of 127.0.0.1 is not trusted"), unknown.err);
  CHECK(says(unknown.err, "help: name the file of its authority's certificate in CURL_CA_BUNDLE"));
  const test::CliResult elsewhere =
      extract(place, "https://localhost:TLS_PORT/org/big", trusting("SSL_CERT_FILE"));
  CHECK(elsewhere.exit_code == 5);
  CHECK_MESSAGE(says(elsewhere.err, "the certificate of localhost is not trusted"), elsewhere.err);
  CHECK(place.server.asked().empty());
}

TEST_CASE("cli address tls: a hub with TLS does not redirect to storage without") {
  if (!can_run()) return;
  const test::HubPlace place;
  std::vector<std::string> environment = trusting("SSL_CERT_FILE");
  environment.push_back("HF_ENDPOINT=https://127.0.0.1:TLS_PORT");
  const test::CliResult result = extract(place, "hf://org/big", environment);
  CHECK(result.exit_code == 3);
  CHECK_MESSAGE(says(result.err, "redirects"), result.err);
}

}  // namespace fp8kv

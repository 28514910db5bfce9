#!/usr/bin/env bash
# Formats every source file. With --check, only lists the files that would change.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[[ "${1:-}" == --check ]] && mode=(--dry-run -Werror)
git ls-files -z -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 -r clang-format "${mode[@]}"

#!/usr/bin/env bash
# Fails when a source file includes a header from a layer above its own or from a sibling.
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A may=(
  [base]="base"
  [core]="base core"
  [io]="base core io"
  [text]="base core text"
  [backend]="base core backend"
  [model]="base core io text backend model"
  [calib]="base core io text backend model calib"
  [report]="base core io text backend model calib report"
  [kernels]="base core backend kernels"
)
status=0
for layer in "${!may[@]}"; do
  folder=src/$layer
  [[ $layer == kernels ]] && folder=kernels
  while IFS=: read -r file line text; do
    used=$(sed -E 's/.*"([a-z_]+)\/.*/\1/' <<<"$text")
    if [[ " ${may[$layer]} " != *" $used "* ]]; then
      echo "$file:$line: $layer may not include $used"
      status=1
    fi
  done < <(grep -rnE '^#include "[a-z_]+/' "$folder" || true)
done
exit $status

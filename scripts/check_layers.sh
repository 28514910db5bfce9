#!/usr/bin/env bash
# Fails if a room (a folder with its own sources) includes a header of a room that it may not use:
# one above it, or a sibling. Every room has a row with the rooms that it may use; CMake links the
# same libraries.
# Also fails if modules include each other, or if two files define a class of the same name.
set -euo pipefail
cd "$(dirname "$0")/.."
values="base core"
configs="config config/describe config/families config/families/rows"
model_files="$values files json formats $configs quant checkpoint"
scales="$model_files scales scales/read scales/rules scales/write scales/verify"
forward="$model_files backend model model/weights"
measured="$forward data data/files policy generate calib eval"
declare -A may=(
  [src/base]=""
  [src/files]="base"
  [src/json]="base files"
  [src/http]="base files"
  [src/http/curl]="http"
  [src/core]="base"
  [src/formats]="$values files json"
  [src/config/describe]="$values json"
  [src/config/families]="$values json config/describe"
  [src/config/families/rows]="$values json config/describe config/families"
  [src/config]="$values json config/describe config/families config/families/rows"
  [src/quant]="$values files json formats"
  [src/checkpoint]="$values files json formats $configs quant"
  [src/remote]="$model_files http"
  [src/unpack]="base"
  [src/formats/parquet]="base json unpack"
  [src/data/files]="$values files unpack"
  [src/data]="$values files json unpack formats/parquet data/files"
  [src/scales]="$model_files"
  [src/scales/loaded]="$model_files scales"
  [src/scales/read]="$model_files scales"
  [src/scales/rules]="$model_files scales"
  [src/scales/write]="$model_files scales scales/read scales/rules"
  [src/scales/verify]="$model_files scales scales/read scales/rules scales/write"
  [src/unicode]=""
  [src/jinja/values]="base json unicode"
  [src/jinja/library]="base json unicode jinja/values"
  [src/jinja]="base json unicode jinja/values jinja/library"
  [src/text/models]="$values json unicode"
  [src/text/sentencepiece]="$values files json unicode text/models"
  [src/text/steps]="$values json unicode text/models text/sentencepiece"
  [src/text]="$values files json unicode text/models text/sentencepiece text/steps"
  [src/chat]="base core files json jinja jinja/values text"
  [src/backend]="$values"
  [src/backend/cpu/isa]="$values backend"
  [src/backend/cpu]="$values backend backend/cpu/isa"
  [src/backend/open]="$values files backend backend/cpu"
  [src/quantize]="$scales backend backend/cpu/isa"
  [src/model/weights]="$model_files backend"
  [src/model]="$model_files backend model/weights"
  [src/generate]="$forward"
  [src/policy]="$values files json formats"
  [src/calib]="$forward data policy"
  [src/eval]="$forward data policy generate calib"
  [src/tasks]="$forward data formats/parquet generate text unicode"
  [src/equalize]="$scales $measured"
  [src/fit]="$forward data policy calib eval"
  [src/attest]="$measured http"
  [src/draw]="base"
  [src/report]="$values policy eval fit draw"
  [src/report/pages]="$values policy eval draw report"
  [src/report/tasks]="$values tasks draw report report/pages"
  [kernels]="core kernels/device"
  [kernels/sim]="base"
  [kernels/ptx]="base"
  [kernels/device]="$values backend kernels/sim"
  [kernels/blocks]="$values kernels kernels/device"
  [kernels/ops]="$values kernels kernels/device kernels/blocks"
  [kernels/backend]="$values backend backend/open kernels kernels/device kernels/ops"
  [tools/options]="$scales backend data policy eval tasks"
  [tools/about]="base json backend/cpu/isa"
  [tools/cli]="$scales quantize equalize backend backend/open data data/files policy eval tasks options about"
  [tools/inputs]="$scales $measured tasks remote chat jinja/values text options"
  [tools/show]="$scales quantize $measured attest text report report/pages options inputs"
  [tools/show/eval]="$scales $measured tasks report report/pages report/tasks options inputs show"
  [tools/show/fit]="$scales $measured tasks fit draw report report/pages options inputs show show/eval"
  [tools/show/verify]="$scales scales/loaded options show"
  [tools/commands]="$scales quantize equalize fit $measured tasks attest http scales/loaded text backend/cpu/isa backend/open report report/pages report/tasks options inputs show show/eval show/fit show/verify"
  [tools]="$values files cli commands inputs options"
)
status=0
complain() {
  echo "$1"
  status=1
}
# Every folder with sources must have a row, and every row's folder must have sources.
rooms() {
  git ls-files -co --exclude-standard 'src/*.h' 'src/*.cpp' 'kernels/*.h' 'kernels/*.cuh' \
    'kernels/*.cu' 'kernels/*.cpp' 'tools/*.h' 'tools/*.cpp' | xargs -n1 dirname | sort -u
}
while read -r room; do
  [[ -n ${may[$room]+row} ]] || complain "$room: has no row in scripts/check_layers.sh"
done < <(rooms)
for room in "${!may[@]}"; do
  compgen -G "$room/*.h" >/dev/null || compgen -G "$room/*.c*" >/dev/null ||
    complain "scripts/check_layers.sh: there are no sources in $room"
  own=${room#src/}
  own=${own#tools/}
  while IFS=: read -r file line text; do
    used=$(dirname "$(cut -d'"' -f2 <<<"$text")")
    [[ $used == . ]] && complain "$file:$line: write the room too: #include \"room/file.h\""
    [[ " ${may[$room]} $own " == *" $used "* ]] || complain "$file:$line: $room may not include $used"
  done < <(grep -nE '^#include "' "$room"/*.{h,cpp,cu,cuh} 2>/dev/null)
done
scripts/check_cycles.sh || status=1
scripts/check_names.sh || status=1
exit $status

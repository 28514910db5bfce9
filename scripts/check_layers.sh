#!/usr/bin/env bash
# Fails if a room (a folder with its own sources) includes a header of a room that it may not use:
# one above it, or a sibling. Every room has a row with the rooms that it may use; CMake links the
# same libraries.
# Also fails if modules include each other, if two files define a class of the same name, if a room
# has over 26 sources, if a source has over 400 lines, if a function has over 60 lines, or if a
# function of a header has over five parameters.
set -euo pipefail
cd "$(dirname "$0")/.."
core="core/numbers core/cache core/model core/scales"
values="base base/machine $core"
configs="config config/values config/describe config/families config/families/groups config/families/rows"
files="files files/output"
model_files="$values $files json formats $configs quant checkpoint/files checkpoint checkpoint/model checkpoint/identity checkpoint/drafts"
scales="$model_files scales scales/read/stores scales/read scales/rules/tables scales/rules scales/write scales/verify"
forward="$model_files backend model/weights model/cache model/parts model/parts/feed_forward model/parts/scores model/parts/sparse model/parts/streams model"
calib="calib/windows calib/measure calib/drafts calib"
measured="$forward data data/files policy generate $calib eval"
isa="backend/cpu/isa/common backend/cpu/isa"
tasks="tasks/items tasks/compare tasks"
show="show show/scales show/models show/answers show/attest"
inputs="inputs inputs/prompts"
declare -A may=(
  [src/base]=""
  [src/files]="base"
  [src/files/output]="base files"
  [src/json]="base files"
  [src/http]="base files"
  [src/http/curl]="http"
  [src/base/machine]="base"
  [src/core/numbers]="base"
  [src/core/cache]="base core/numbers"
  [src/core/model]="base core/numbers core/cache"
  [src/core/scales]="base core/numbers core/cache core/model"
  [src/formats]="$values files json"
  [src/config/values]="$values json"
  [src/config/describe]="$values json config/values"
  [src/config/families]="$values json config/values config/describe"
  [src/config/families/groups]="$values json config/values config/describe config/families"
  [src/config/families/rows]="$values json config/values config/describe config/families config/families/groups"
  [src/config/families/rows/dense]="$values json config/values config/describe config/families config/families/groups config/families/rows"
  [src/config/families/rows/experts]="$values json config/values config/describe config/families config/families/groups config/families/rows"
  [src/config/families/rows/multimodal]="$values json config/values config/describe config/families config/families/groups config/families/rows"
  [src/config/families/rows/states]="$values json config/values config/describe config/families config/families/groups config/families/rows"
  [src/config]="$values json config/values config/describe config/families config/families/groups config/families/rows"
  [src/quant]="$values files json formats"
  [src/checkpoint/files]="$values $files json formats $configs"
  [src/checkpoint]="$values $files json formats $configs quant checkpoint/files"
  [src/checkpoint/identity]="$values $files json formats $configs quant checkpoint/files checkpoint checkpoint/model checkpoint/drafts"
  [src/checkpoint/model]="$values $files json formats $configs quant checkpoint/files checkpoint"
  [src/checkpoint/drafts]="$values $files json formats $configs quant checkpoint/files checkpoint checkpoint/model"
  [src/remote]="$model_files http"
  [src/unpack]="base"
  [src/formats/parquet]="base json unpack"
  [src/data/files]="$values files unpack"
  [src/data]="$values files json unpack formats/parquet data/files"
  [src/scales]="$model_files"
  [src/scales/loaded]="$model_files scales"
  [src/scales/read/stores]="$model_files scales"
  [src/scales/read]="$model_files scales scales/read/stores"
  [src/scales/rules/tables]="$model_files scales"
  [src/scales/rules]="$model_files scales scales/rules/tables"
  [src/scales/write]="$model_files scales scales/read/stores scales/read scales/rules/tables scales/rules"
  [src/scales/verify]="$model_files scales scales/read/stores scales/read scales/rules/tables scales/rules scales/write"
  [src/unicode]=""
  [src/jinja/values]="base json unicode"
  [src/jinja/library]="base json unicode jinja/values"
  [src/jinja]="base json unicode jinja/values jinja/library"
  [src/text/models]="$values json unicode"
  [src/text/sentencepiece]="$values files json unicode text/models"
  [src/text/steps]="$values json unicode text/models text/sentencepiece"
  [src/text]="$values files json unicode text/models text/sentencepiece text/steps"
  [src/chat]="base $core files json jinja jinja/values text"
  [src/backend]="$values"
  [src/backend/cpu/isa/common]="$values backend"
  [src/backend/cpu/isa/x86]="$values backend backend/cpu/isa/common"
  [src/backend/cpu/isa/aarch64]="$values backend backend/cpu/isa/common"
  [src/backend/cpu/isa]="$values backend backend/cpu/isa/common backend/cpu/isa/x86"
  [src/backend/cpu/memory]="$values backend $isa"
  [src/backend/cpu/products]="$values backend $isa backend/cpu/memory"
  [src/backend/cpu/attention]="$values backend $isa backend/cpu/memory"
  [src/backend/cpu]="$values backend $isa backend/cpu/memory backend/cpu/products backend/cpu/attention"
  [src/backend/open]="$values files backend backend/cpu"
  [src/quantize]="$scales backend $isa"
  [src/model/weights]="$model_files backend"
  [src/model/cache]="$model_files backend model/weights"
  [src/model/parts]="$model_files backend model/weights"
  [src/model/parts/feed_forward]="$model_files backend model/weights model/parts"
  [src/model/parts/scores]="$model_files backend model/weights model/parts"
  [src/model/parts/sparse]="$model_files backend model/weights model/parts"
  [src/model/parts/streams]="$model_files backend model/weights model/parts"
  [src/model]="$model_files backend model/weights model/cache model/parts model/parts/feed_forward model/parts/scores model/parts/sparse model/parts/streams"
  [src/generate]="$forward"
  [src/policy]="$values files json formats"
  [src/calib/windows]="$forward data policy"
  [src/calib/measure]="$forward data policy calib/windows"
  [src/calib/drafts]="$forward data policy calib/windows"
  [src/calib]="$forward data policy calib/windows calib/measure calib/drafts"
  [src/eval]="$forward data policy generate $calib"
  [src/tasks/items]="$forward data formats/parquet generate text unicode"
  [src/tasks/compare]="$forward data formats/parquet generate text unicode tasks/items"
  [src/tasks]="$forward data formats/parquet generate text unicode tasks/items tasks/compare"
  [src/equalize]="$scales $measured"
  [src/fit]="$forward data policy $calib eval"
  [src/attest]="$measured http"
  [src/draw]="base"
  [src/report]="$values policy eval fit draw"
  [src/report/pages]="$values policy eval draw report"
  [src/report/tasks]="$values $tasks draw report report/pages"
  [kernels]="$core kernels/device"
  [kernels/sim]="base"
  [kernels/ptx/order]="base"
  [kernels/ptx/machine]="base kernels/ptx/order"
  [kernels/ptx/operations]="base kernels/ptx/machine"
  [kernels/ptx]="base base/machine kernels/ptx/machine kernels/ptx/operations kernels/ptx/order"
  [kernels/device]="$values backend kernels/sim"
  [kernels/blocks]="$values kernels kernels/device"
  [kernels/library]="$values kernels kernels/device kernels/blocks"
  [kernels/ops]="$values kernels kernels/device kernels/blocks kernels/library"
  [kernels/attention]="$values kernels kernels/device kernels/blocks"
  [kernels/backend]="$values backend backend/open kernels kernels/device kernels/library kernels/ops"
  [tools/options]="$scales backend data policy eval $tasks"
  [tools/about]="base json $isa"
  [tools/cli/flags]="$scales backend backend/open data data/files policy eval $tasks options about"
  [tools/cli/commands]="$scales quantize equalize backend backend/open data data/files policy eval $tasks options about cli/flags"
  [tools/cli]="$scales quantize equalize backend backend/open data data/files policy eval $tasks options about cli/flags cli/commands"
  [tools/inputs]="$scales $measured $tasks remote chat jinja/values text options"
  [tools/inputs/prompts]="$scales $measured $tasks chat text options inputs"
  [tools/show]="$scales quantize $measured text report report/pages options inputs"
  [tools/show/scales]="$scales quantize $measured text report report/pages options inputs show"
  [tools/show/models]="$scales $measured options inputs show show/scales"
  [tools/show/answers]="$measured text options $inputs show"
  [tools/show/attest]="$scales attest options show"
  [tools/show/eval]="$scales $measured $tasks report report/pages report/tasks options inputs show show/scales"
  [tools/show/fit]="$scales $measured $tasks fit draw report report/pages options inputs show show/scales show/eval"
  [tools/show/verify]="$scales scales/loaded options show show/scales"
  [tools/commands/parts]="$scales quantize equalize fit $measured $tasks http scales/loaded text backend/open report report/pages report/tasks options $inputs $show show/eval show/fit show/verify"
  [tools/commands]="$scales quantize equalize fit $measured $tasks attest http scales/loaded text $isa backend/open report report/pages report/tasks options $inputs $show show/eval show/fit show/verify commands/parts"
  [tools]="$values $files cli commands $inputs options"
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
    used=${text#*\"}
    used=${used%%\"*}
    [[ $used == */* ]] || complain "$file:$line: write the room too: #include \"room/file.h\""
    used=${used%/*}
    [[ " ${may[$room]} $own " == *" $used "* ]] || complain "$file:$line: $room may not include $used"
  done < <(grep -nE '^#include "' "$room"/*.{h,cpp,cu,cuh} 2>/dev/null)
done
# These exceed it. Each has its reason.
declare -A exceeds=(
  [src/unicode/unicode_tables.cpp]="a script writes it"
)
# check_size NAME COUNT MOST NOUN
check_size() {
  if (($2 > $3)) && [[ -z ${exceeds[$1]+row} ]]; then
    complain "$1: has $2 $4, expected $3 at most: split it by idea, or give a reason in scripts/check_layers.sh"
  elif (($2 <= $3)) && [[ -n ${exceeds[$1]+row} ]]; then
    complain "scripts/check_layers.sh: $1 has $2 $4, so it needs no exception"
  fi
}
sources=$(git ls-files -co --exclude-standard {src,kernels,tools,tests}/\*.{h,cpp,cu,cuh} | sort -u)
while read -r count room; do check_size "$room" "$count" 26 sources; done \
  < <(xargs -n1 dirname <<<"$sources" | sort | uniq -c)
while read -r count file; do [[ $file == total ]] || check_size "$file" "$count" 400 lines; done \
  < <(xargs wc -l <<<"$sources")
scripts/check_cycles.sh || status=1
scripts/check_names.sh || status=1
scripts/check_parameters || status=1
scripts/check_lengths || status=1
exit $status

# shellcheck shell=bash
# Stages of a long run, with their seconds and budgets. .ci/run sources this file.
#   stage NAME BUDGET COMMAND...   runs it; BUDGET is in seconds, on two quiet cores
#   show_stages                    all of them in a table
# A stage over its budget gets a note but does not fail, because a busy machine is slow. Processor
# seconds tell the two apart.

stage_rows=()
stage_running=

# User and system seconds of all finished commands. Linux counts them in hundredths.
processor_seconds() {
  local fields
  read -ra fields <"/proc/$$/stat"
  echo $(((fields[15] + fields[16]) / 100))
}

stage() {
  local name=$1 budget=$2 from=$SECONDS used
  used=$(processor_seconds)
  shift 2
  printf '\n== %s (budget %d s)\n' "$name" "$budget"
  stage_running=$name
  "$@"
  stage_running=
  stage_rows+=("$((SECONDS - from)) $budget $(($(processor_seconds) - used)) $name")
  stage_row "${stage_rows[-1]}"
}

stage_row() {
  local took budget used name note=
  read -r took budget used name <<<"$1"
  ((took <= budget)) || note='  OVER ITS BUDGET'
  printf '%6d s of %5d, %6d s of processor  %s%s\n' "$took" "$budget" "$used" "$name" "$note"
}

show_stages() {
  local row took budget used rest sums=(0 0 0)
  printf '\n== stages\n'
  for row in "${stage_rows[@]}"; do
    stage_row "$row"
    read -r took budget used rest <<<"$row"
    ((sums[0] += took, sums[1] += budget, sums[2] += used)) || true
  done
  stage_row "${sums[*]} all of them"
  [[ -z $stage_running ]] || printf 'not done: %s\n' "$stage_running"
}

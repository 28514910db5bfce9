#!/usr/bin/env bash
# The script for each rank of an MPI job. The second command joins the parts. The program itself
# needs no MPI.
#   mpirun -n 4 -x MODEL=/models/M -x DATA=/data/text.jsonl -x OUT=/results mpi_rank.sh
#   mpirun -n 1 fp8kv merge /results/part-*.json -o /results/scales.json
# OUT is a folder that all nodes see. After a failure, start the job again: finished ranks do
# nothing, and the others continue after the last layer that they finished.
set -euo pipefail
# Variables of Open MPI, of MPICH and Intel MPI, and of Slurm's srun.
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:?is set by none of Open MPI, MPICH and srun}}}
size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-${SLURM_NTASKS:-}}}
part=$OUT/part-$rank
[[ ! -e $part.json ]] || exit 0
exec fp8kv calibrate "$MODEL" --data "$DATA" --samples "${SAMPLES:-512}" \
  --seq-len "${SEQ_LEN:-2048}" --shard "$rank/$size" --resume --threads "${THREADS:-1}" \
  -o "$part.json"

#!/usr/bin/env bash
# Makes a set of the shards, when all tasks of the array job have succeeded. docs/how-to/distributed.md is the guide.
#
#   sbatch --dependency=afterok:$job examples/slurm_commit.sh train.plan train.packs
#
#SBATCH --job-name=packds-commit
#SBATCH --cpus-per-task=1
#SBATCH --mem=8G
set -euo pipefail
plan=$1 set=$2

# Exits with 1 if samples were skipped or replaced, and lists them. The set is written in this case too.
exec packds commit "$plan" -o "$set"

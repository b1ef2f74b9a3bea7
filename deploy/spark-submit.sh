#!/bin/sh
# Run the nightly jobs with spark-submit: on a cluster of your own, with its settings.
#
#   MASTER=spark://host:7077 deploy/spark-submit.sh reconcile ARCHIVE --date 2026-03-14
#   MASTER=yarn deploy/spark-submit.sh --conf spark.executor.memory=4g -- archive compact ARCHIVE
#
# What stands before `--` is for spark-submit, the rest is a command of the gateway: reconcile,
# archive compact, archive names, archive forget. The exit status is that of the command.
#
#   MASTER       where the executors are (local[*])
#   PYTHON       the Python of the driver, which has the gateway's packages (python3)
#   PYSPARK_PYTHON   that of the executors, which has PyArrow and NumPy (the driver's)
#   SPARK_HOME   a Spark distribution (that of PySpark, else spark-submit on PATH)
#
# The driver is this machine (client mode). The gateway's code travels as a zip file.
set -eu

if [ "$#" -eq 0 ]; then
  echo "usage: [MASTER=URL] $0 [SPARK-SUBMIT OPTION... --] COMMAND ARCHIVE [OPTION...]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
if [ -d "$here/../gateway" ]; then # beside its source, which then is what runs
  PYTHONPATH=$here/..${PYTHONPATH:+:$PYTHONPATH}
  export PYTHONPATH
fi
python=${PYTHON:-python3}
if [ -n "${SPARK_HOME:-}" ]; then
  submit=$SPARK_HOME/bin/spark-submit
elif home=$("$python" -c 'import pyspark; print(pyspark.__path__[0])' 2>/dev/null); then
  submit=$home/bin/spark-submit
else
  submit=spark-submit
fi
command -v "$submit" >/dev/null || {
  echo "$0: no $submit; set SPARK_HOME, or pip install 'gateway[reconcile]' for $python" >&2
  exit 2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$python" -c 'import pathlib, sys
from gateway.reconcile.zip_package import packed
packed(pathlib.Path(sys.argv[1]))' "$work"
cat >"$work/main.py" <<'END'
import sys

from gateway.cli.archive.submitted import main

sys.exit(main(sys.argv[1:]))
END

# The program goes where the first `--` stands, or before everything.
apart=
for word in "$@"; do
  shift
  if [ -z "$apart" ] && [ "$word" = -- ]; then
    word=$work/main.py
    apart=yes
  fi
  set -- "$@" "$word"
done
[ -n "$apart" ] || set -- "$work/main.py" "$@"

export PYSPARK_PYTHON="${PYSPARK_PYTHON:-$python}"
export PYSPARK_DRIVER_PYTHON="${PYSPARK_DRIVER_PYTHON:-$python}"
"$submit" --master "${MASTER:-local[*]}" --name gateway --conf spark.log.level=WARN \
  --py-files "$work/gateway.zip" "$@"

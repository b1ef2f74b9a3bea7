#!/bin/sh
# Run the reconciliation and the archive's maintenance with spark-submit, on your cluster.
#
#   MASTER=spark://host:7077 deploy/spark-submit.sh reconcile ARCHIVE --date 2026-03-14
#   MASTER=yarn deploy/spark-submit.sh --conf spark.executor.memory=4g -- archive compact ARCHIVE
#
# Options before `--` are for spark-submit. The rest is a command of the gateway: reconcile,
# archive compact, or archive names. The exit status is that of the command.
#
#   MASTER           the master URL (local[*])
#   PYTHON           the Python of the driver, with the gateway's packages (python3)
#   PYSPARK_PYTHON   the Python of the executors, with PyArrow and NumPy (PYTHON)
#   SPARK_HOME       a Spark distribution (that of PySpark, else spark-submit on PATH)
#
# The driver runs on this machine (client mode). The gateway's code is sent as a zip file.
set -eu

if [ "$#" -eq 0 ]; then
  echo "usage: [MASTER=URL] $0 [SPARK-SUBMIT OPTION... --] COMMAND ARCHIVE [OPTION...]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
if [ -d "$here/../gateway" ]; then # use the source beside this script
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
  echo "$0: $submit not found; set SPARK_HOME, or install pyspark for $python: the extra reconcile of the wheel" >&2
  exit 2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$python" -c 'import pathlib, shutil, sys
import gateway
package = pathlib.Path(gateway.__file__).parent
shutil.make_archive(sys.argv[1], "zip", package.parent, package.name)' "$work/gateway"
cat >"$work/main.py" <<'END'
import sys

from gateway.night.cli.submitted import main

sys.exit(main(sys.argv[1:]))
END

# Replace the first `--` with the program, or insert the program before all words.
separated=
for word in "$@"; do
  shift
  if [ -z "$separated" ] && [ "$word" = -- ]; then
    word=$work/main.py
    separated=yes
  fi
  set -- "$@" "$word"
done
[ -n "$separated" ] || set -- "$work/main.py" "$@"

export PYSPARK_PYTHON="${PYSPARK_PYTHON:-$python}"
export PYSPARK_DRIVER_PYTHON="${PYSPARK_DRIVER_PYTHON:-$python}"
"$submit" --master "${MASTER:-local[*]}" --name gateway --conf spark.log.level=WARN \
  --py-files "$work/gateway.zip" "$@"

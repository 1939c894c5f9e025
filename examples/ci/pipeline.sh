#!/bin/sh
# The memory step of a build server's pipeline: three runs, one verdict. Works in the current folder, and leaves memory.xml
# (JUnit), memory.sarif and the dumps there as the build's artifacts.
#
#   pipeline.sh BUDGET BASE PROGRAM [ARGS...]
#
# BASE is a folder with a dump of the last good build. Where there is none yet, the first run becomes it.
set -eu

budget=$1 base=$2
shift 2

memlog check --budget="$budget" --validate
mkdir -p memory

for run in 1 2 3; do
    rm -rf "memory/run$run"
    memlog run -q --no-page -o "memory/run$run" -- "$@" >/dev/null
done

set -- memory/run1 memory/run2 memory/run3
if [ ! -d "$base" ]; then
    mkdir -p "$base"
    cp memory/run1/*.exit.pftrace "$base"
fi

code=0
memlog check --budget="$budget" --base="$base" --junit=memory.xml --sarif=memory.sarif "$@" || code=$?
case $code in
0) echo "memory: every rule is held" ;;
3) echo "memory: a rule is broken; the build fails" ;;
4) echo "memory: a rule can be called neither held nor broken; the build fails, as nobody knows" ;;
*) echo "memory: the check itself failed ($code)" ;;
esac
exit "$code"

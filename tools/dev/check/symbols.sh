#!/usr/bin/env bash
# What the built binaries may name: tools/dev/check/symbols.sh OUT. Prints each violation, exit 1 on any.
#  - libmemlog.so exports client/preload.map, no more and no less, and needs libc.so.6 alone, of glibc 2.17 or older;
#  - its last relocation is the resolver in which it begins where another library is the first (client/hooks/first.c);
#  - libmemlog-attached.so exports client/attached/attached.map, needs no library and imports nothing: a running process gives it none;
#  - what libmemlog.so and memlog-service import from outside stands in <room>/symbols.allow (one `name  # reason` a line), and no more:
#    authority that slips in below the headers (fopen, getenv, system) is a new name in that list.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
out=${1:?usage: symbols.sh OUT}
export LC_ALL=C
failed=0

fail() {
    echo "symbols: $*"
    failed=1
}

# The global names of a version script.
map_names() {
    sed -e 's/#.*//' -e 's@/\*.*\*/@@g' "$1" | tr '\n' ' ' |
        sed -e 's/.*global:\(.*\)local:.*/\1/' | tr ';' '\n' | tr -d ' \t' | sed '/^$/d' | sort -u
}

exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

# What a compiler makes of a function to check its lengths (_FORTIFY_SOURCE) is that function: which calls it takes differs from one to the next.
imported() {
    nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sed 's/^__\(.*\)_chk$/\1/' | sort -u
}

allowed() {
    sed -e 's/#.*//' -e 's/[[:space:]]*//g' -e '/^$/d' "$1" | sort -u
}

# check_imports ROOM BINARY
check_imports() {
    local name
    if [[ ! -e $1/symbols.allow ]]; then
        fail "$1/symbols.allow is missing: list what $2 may import, each with its reason"
        return
    fi
    while read -r name; do
        fail "$2 imports $name, which $1/symbols.allow does not list"
    done < <(imported "$2" | comm -23 - <(allowed "$1/symbols.allow"))
    while read -r name; do
        fail "$1/symbols.allow lists $name, which $2 does not import"
    done < <(imported "$2" | comm -13 - <(allowed "$1/symbols.allow"))
}

preload=$out/libmemlog.so
if [[ -e $preload ]]; then
    while read -r name; do
        fail "$preload exports $name, which client/preload.map does not list"
    done < <(exported "$preload" | comm -23 - <(map_names client/preload.map))
    while read -r name; do
        fail "$preload does not export $name, which client/preload.map lists"
    done < <(exported "$preload" | comm -13 - <(map_names client/preload.map))
    while read -r name; do
        [[ $name == libc.so.6 ]] || fail "$preload needs $name: the preload may need libc.so.6 alone"
    done < <(readelf -d "$preload" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    while read -r version; do
        minor=$(sed -n 's/^GLIBC_2\.\([0-9]*\)\(\.[0-9]*\)*$/\1/p' <<<"$version")
        ((${minor:-99} <= 17)) || fail "$preload needs $version: programs with an older glibc, in another root, would die of it"
    done < <(readelf -VW "$preload" | sed -n '/needs section/,$s/.*  Name: \([^ ]*\).*/\1/p')
    readelf -rW "$preload" | grep R_X86_64 | tail -n 1 | grep -q R_X86_64_IRELATIVE ||
        fail "$preload has no resolver behind its other relocations: client/hooks/first.c would begin too early"
    check_imports client "$preload"
elif [[ -e client/preload.map ]]; then
    fail "$preload was not built"
fi

attached=$out/libmemlog-attached.so
if [[ -e $attached ]]; then
    while read -r name; do
        fail "$attached exports $name, which client/attached/attached.map does not list"
    done < <(exported "$attached" | comm -23 - <(map_names client/attached/attached.map))
    while read -r name; do
        fail "$attached does not export $name, which client/attached/attached.map lists"
    done < <(exported "$attached" | comm -13 - <(map_names client/attached/attached.map))
    while read -r name; do
        fail "$attached imports $name: nobody binds it in a running process"
    done < <(imported "$attached")
    while read -r name; do
        fail "$attached needs $name: it may need no library"
    done < <(readelf -d "$attached" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    if readelf -lW "$attached" | grep -q "  TLS "; then
        fail "$attached has thread-local storage, which no loader makes in a running process"
    fi
elif [[ -e client/attached/attached.map ]]; then
    fail "$attached was not built"
fi

if [[ -e $out/memlog-service ]]; then
    check_imports service "$out/memlog-service"
elif [[ -e service/main.c ]]; then
    fail "$out/memlog-service was not built"
fi
exit "$failed"

#!/usr/bin/env bash
# Layout is .clang-format's and `gn format`'s: tools/dev/check/format.sh names what differs, `format.sh --fix` rewrites it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

mode=(-n --Werror)
gn_mode=(--dry-run)
if [[ ${1:-} == --fix ]]; then
    mode=(-i)
    gn_mode=()
fi

failed=0
git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h' '*.cc' ':!tests/**/golden/*' |
    xargs -0 -r -P2 -n16 clang-format "${mode[@]}" || failed=1
while IFS= read -r -d '' file; do
    gn format "${gn_mode[@]}" "$file" >/dev/null || {
        echo "$file: not as gn format writes it"
        failed=1
    }
done < <(git ls-files -z --cached --others --exclude-standard -- '*.gn' '*.gni' .gn)
while IFS= read -r -d '' file; do
    if grep -nE '[[:space:]]+$' "$file"; then
        echo "$file: white space at a line's end"
        failed=1
    fi
done < <(git ls-files -z --cached --others --exclude-standard -- '*.py' '*.sh' '*.mojom' run test .ci/run tools/dev/setup tools/dev/build tools/dev/suites)
exit "$failed"

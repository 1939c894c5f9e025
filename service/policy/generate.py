"""Make the seccomp filter's table of policy files: generate.py INPUT... OUTPUT.

The format stands at the top of service/policy/syscalls.policy. Lines of a further file are numbered from 10001.
"""
import re
import sys

CONDITION = re.compile(r"arg([0-5])(?:\s*&\s*(\w+))?\s*==\s*(\w+)")
RUN_TIME_VALUES = {"SELF": "ML_POLICY_SELF", "HOST": "ML_POLICY_HOST"}
CONDITIONS_MAX = 2  # ML_POLICY_CONDITIONS_MAX
FILE_LINES_MAX = 10000

HEAD = """/* Generated from the policies beside service/policy/generate.py. Do not edit. */
#include "service/policy/policy.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

const struct ml_policy_line ml_policy_lines[] = {
"""
TAIL = "};\nconst size_t ml_policy_lines_count = sizeof(ml_policy_lines) / sizeof(ml_policy_lines[0]);\n"


def fail(path, number, expected):
    sys.exit(f"{path}:{number}: error: expected {expected}")


def conditions_of(path, number, text):
    conditions = []
    for part in filter(None, (part.strip() for part in text.split(" and "))):
        match = CONDITION.fullmatch(part)
        if not match:
            fail(path, number, f"`argN == VALUE` or `argN & MASK == VALUE`, found `{part}`")
        argument, mask, value = match.groups()
        # Descriptors, flags and pids are 32 bits wide; the kernel ignores the rest of the register, so must we.
        conditions.append((argument, mask or "UINT32_MAX", RUN_TIME_VALUES.get(value, value)))
    if len(conditions) > CONDITIONS_MAX:
        fail(path, number, f"at most {CONDITIONS_MAX} conditions")
    return conditions


def rows_of(path, first_line):
    with open(path, encoding="utf-8") as policy:
        for number, line in enumerate(policy, 1):
            if not line.strip() or line.startswith("#"):
                continue
            columns = [column.strip() for column in line.split("|")]
            if len(columns) != 3 or not all(columns):
                fail(path, number, "`syscall [conditions] | reason | exercise`")
            name, _, text = columns[0].partition(" ")
            conditions = conditions_of(path, number, text)
            body = ", ".join(f"{{{argument}, {mask}, {value}}}" for argument, mask, value in conditions)
            yield (
                f'    {{"{name}", SCMP_SYS({name}), {first_line + number}, {len(conditions)}, '
                f'{{{body or "{0, 0, 0}"}}}, "{columns[2]}"}}, /* {columns[1]} */\n'
            )


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    *sources, target = sys.argv[1:]
    rows = [row for i, source in enumerate(sources) for row in rows_of(source, i * FILE_LINES_MAX)]
    with open(target, "w", encoding="utf-8") as out:
        out.write(HEAD + "".join(rows) + TAIL)


if __name__ == "__main__":
    main()

"""Make the seccomp filter's table of a policy file: generate.py INPUT OUTPUT. The format stands at the policy's top."""
import re
import sys

FIELDS = 4
ALTERNATIVE = re.compile(r"arg(?P<arg>[0-5])(?:\s*&\s*(?P<mask>\w+))?\s*==\s*(?P<value>\w+)")


def fail(path, number, text):
    sys.exit(f"{path}:{number}: error: {text}")


def alternatives(path, number, condition):
    """Each way in which the condition can hold, as (argument, mask, value); an argument of -1 is always."""
    if condition == "-":
        return [("-1", "0", "0")]
    rows = []
    for part in condition.split(","):
        match = ALTERNATIVE.fullmatch(part.strip())
        if not match:
            fail(path, number, f"expected `argN == VALUE` or `argN & MASK == VALUE`, found `{part.strip()}`")
        rows.append((match["arg"], match["mask"] or "UINT32_MAX", match["value"]))
    return rows


def rows_of(path):
    seen = set()
    with open(path, encoding="utf-8") as policy:
        for number, line in enumerate(policy, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split("|")]
            if len(fields) != FIELDS or not all(fields):
                fail(path, number, "expected `syscall | condition | reason | test`")
            name, condition, reason, _ = fields
            if not re.fullmatch(r"[a-z0-9_]+", name):
                fail(path, number, f"expected a syscall's name, found `{name}`")
            if name in seen:
                fail(path, number, f"{name} has a line already")
            seen.add(name)
            for argument, mask, value in alternatives(path, number, condition):
                yield f'    {{"{name}", SCMP_SYS({name}), {argument}, {mask}, {value}}}, /* {reason} */'


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = sys.argv[1:]
    rows = list(rows_of(source))
    with open(target, "w", encoding="utf-8") as out:
        out.write(
            "/* Generated from service/policy/syscalls.policy by service/policy/generate.py. Do not edit. */\n"
            '#include "service/policy/policy.h"\n\n'
            "#include <linux/fcntl.h>\n"
            "#include <seccomp.h>\n"
            "#include <sys/ioctl.h>\n"
            "#include <sys/mman.h>\n\n"
            "const struct ml_policy_rule ml_policy_rules[] = {\n"
        )
        out.write("\n".join(rows))
        out.write(
            "\n};\n"
            "const size_t ml_policy_rules_count = sizeof(ml_policy_rules) / sizeof(ml_policy_rules[0]);\n"
        )


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""embed.py NAME INPUT OUTPUT: the input's bytes as a C text, `const char NAME[]`, with a NUL behind it.

A line @FILE:name@ in it becomes that file, which lies beside the input.
"""
import pathlib
import re
import sys


def main():
    name, source, target = sys.argv[1:]
    folder = pathlib.Path(source).parent
    content = pathlib.Path(source).read_bytes()
    content = re.sub(rb"(?m)^@FILE:([\w.]+)@$", lambda name: (folder / name[1].decode()).read_bytes(), content)
    lines = [f"/* Made of {pathlib.Path(source).name} by tools/gn/embed.py; not to be edited. */"]
    lines += [f"extern const char {name}[];", f"const char {name}[] = {{"]
    for start in range(0, len(content), 20):
        lines.append("    " + ", ".join(str(byte if byte < 128 else byte - 256) for byte in content[start:start + 20]) + ",")
    lines += ["    0,", "};", ""]
    pathlib.Path(target).write_text("\n".join(lines))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""assets.py OUTPUT PACKAGES PATH=FILE...: the page's files as C, for host/page_internal.h's ml_page_assets.

A FILE of the form npm:NAME is one of an npm package: package-lock.json beside this script names its version and checksum, and npm
brings it into the folder PACKAGES, once for each state of the lock file. Nothing is taken from anywhere else, and the finished page
asks nobody but memlog for anything.
"""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


def install(folder):
    lock = (HERE / "package-lock.json").read_text()
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_text() == lock:
        return
    if not shutil.which("npm"):
        sys.exit("assets.py: npm is missing; tools/setup installs it (Debian's package npm)")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder / name)
    words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"assets.py: npm could not bring what {HERE / 'package-lock.json'} names:\n{done.stderr}")
    stamp.write_text(lock)


def array(name, content):
    lines = [f"static const char {name}[] = {{"]
    for start in range(0, len(content), 24):
        lines.append("    " + ", ".join(str(byte if byte < 128 else byte - 256) for byte in content[start:start + 24]) + ",")
    return [*lines, "    0,", "};"]


def main():
    output, packages, *pairs = sys.argv[1:]
    packages = pathlib.Path(packages)
    install(packages)
    lines = ["/* Made by host/page/assets.py; not to be edited. */", '#include "host/page_assets.h"', ""]
    rows = []
    for number, pair in enumerate(pairs):
        path, _, name = pair.partition("=")
        file = packages / "node_modules" / name[4:] if name.startswith("npm:") else pathlib.Path(name)
        content = file.read_bytes()
        lines += [*array(f"asset_{number}", content), ""]
        rows.append(f'    {{"{path}", "{TYPES[file.suffix]}", asset_{number}, {len(content)}}},')
    lines += ["const struct ml_page_asset ml_page_assets[] = {", *rows, "    {0, 0, 0, 0},", "};", ""]
    pathlib.Path(output).write_text("\n".join(lines))


if __name__ == "__main__":
    main()

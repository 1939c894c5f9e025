"""The files of the tree, and what a check has found in them: for the checks beside this file."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
SKIPPED = re.compile(r"^(\.git|out[^/]*|node_modules)(/|$)")

errors = []


def report(rule, where, text):
    errors.append(f"{where}: {rule}: {text}")


def files(root):
    """Every file of the tree, committed or about to be; of a copy without git, all of it but the build."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
    )
    names = listed.stdout.splitlines()
    if listed.returncode != 0:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
        names = [name for name in names if not SKIPPED.match(name)]
    return sorted(name for name in set(names) if (root / name).is_file())


def exit_code(closing):
    """Prints what was found, and how many "%d breaches" they are; 1 on any."""
    for line in errors:
        print(line)
    if errors:
        print(closing % len(errors))
    return 1 if errors else 0

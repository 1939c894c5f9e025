"""Man pages, and what shells complete, from the options that memlog itself tells (`memlog help --dump-options`).

    manuals.py MEMLOG FOLDER

FOLDER gets man/man1/*.1, bash-completion/completions/memlog, zsh/site-functions/_memlog and fish/vendor_completions.d/memlog.fish: as they
lie below a prefix's share.
"""
import json
import pathlib
import re
import subprocess
import sys

import completions

OVERVIEW = """memlog shows who holds which memory, over whole process trees.
It records each allocation and each free of every process of a tree, knows who holds every byte, and writes it into dumps."""
FILES = (
    ("/etc/memlog/never", "what is never recorded on this machine"),
    ("$XDG_CACHE_HOME/memlog, ~/.cache/memlog", "names of functions that were found"),
)


def ask(memlog, *words):
    return subprocess.run([memlog, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def tables_of(text):
    """The sub-commands, in their order. What two tables have of one name is one command."""
    tables = {}
    for table in map(json.loads, text.splitlines()):
        if table["program"] != "memlog":
            continue
        first = tables.setdefault(table["command"], table)
        if first is not table:
            known = {option["name"] for option in first["options"]}
            first["options"] += [option for option in table["options"] if option["name"] not in known]
    return list(tables.values())


def roff(text):
    """No character of the text is a command."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def bold(text):
    return f"\\fB{roff(text)}\\fR"


def paragraphs(text):
    """Lines that begin with a blank stay as they are."""
    lines = []
    free = True
    for line in text.split("\n"):
        if line.startswith(" ") == free:
            lines.append(".nf" if free else ".fi")
            free = not free
        elif lines and free and line:
            lines.append(".PP")
        if line.strip():
            lines.append(roff(line))
    return lines + ([] if free else [".fi"])


def value_of(option):
    value = option.get("value") or "|".join(option.get("words", ()))
    if not value:
        return ""
    return f"[=\\fI{roff(value)}\\fR]" if option.get("value_optional") else f"=\\fI{roff(value)}\\fR"


def option_lines(option):
    names = [bold(option["short"])] if "short" in option else []
    names.append(bold(option["name"]) + value_of(option))
    lines = [".TP", ", ".join(names), roff(option["help"])]
    if option.get("words") and option.get("value"):
        lines.append(roff(", ".join(option["words"]) + "."))
    return lines


def head(name, version, summary):
    return [f'.TH {roff(name.upper())} 1 "" "memlog {version}" "memlog"', ".SH NAME", f"{roff(name)} \\- {roff(summary)}"]


def command_page(table, version):
    lines = head(f"memlog-{table['command']}", version, table["summary"])
    lines += [".SH SYNOPSIS", f"{bold('memlog ' + table['command'])} {roff(table['usage'])}"]
    if table.get("about"):
        lines += [".SH DESCRIPTION", *paragraphs(table["about"])]
    lines.append(".SH OPTIONS")
    group = None
    for option in table["options"]:
        if option.get("group") and option["group"] != group:
            group = option["group"]
            lines.append(f".SS {roff(group)}")
        lines += option_lines(option)
    negative = next(((option["negative"], option["name"]) for option in table["options"] if "negative" in option), None)
    if negative:
        lines += [".TP", bold("--no-") + "\\fIFLAG\\fR"]
        lines.append(f"take back a flag, as if it had not been said: {bold(negative[0])}, where the config file has {bold(negative[1])}")
    if table.get("notes"):
        lines += [".SH NOTES", *paragraphs(table["notes"])]
    lines += [".SH EXAMPLES", ".nf", roff(table["example"].rstrip("\n")), ".fi", ".SH SEE ALSO", f"{bold('memlog')}(1)"]
    return "\n".join(lines) + "\n"


def overview_page(tables, version):
    lines = head("memlog", version, "who holds which memory, over whole process trees")
    lines += [".SH SYNOPSIS", f"{bold('memlog')} \\fICOMMAND\\fR [\\fIOPTIONS\\fR]", ".SH DESCRIPTION", *paragraphs(OVERVIEW), ".SH COMMANDS"]
    for table in tables:
        lines += [".TP", bold(table["command"]), roff(table["summary"] + ".")]
    lines.append(".SH FILES")
    for path, what in FILES:
        lines += [".TP", f"\\fI{roff(path)}\\fR", roff(what + ".")]
    lines += [".SH EXAMPLES", ".nf", roff("memlog run -- python3 program.py"), ".fi", ".SH SEE ALSO"]
    lines.append(", ".join(f"{bold('memlog-' + table['command'])}(1)" for table in tables))
    return "\n".join(lines) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    memlog, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    tables = tables_of(ask(memlog, "help", "--dump-options"))
    version = ask(memlog, "--version").split()[1]
    write(folder / "man" / "man1" / "memlog.1", overview_page(tables, version))
    for table in tables:
        write(folder / "man" / "man1" / f"memlog-{table['command']}.1", command_page(table, version))
    write(folder / "bash-completion" / "completions" / "memlog", completions.bash(tables))
    write(folder / "zsh" / "site-functions" / "_memlog", completions.zsh(tables))
    write(folder / "fish" / "vendor_completions.d" / "memlog.fish", completions.fish(tables))


if __name__ == "__main__":
    main()

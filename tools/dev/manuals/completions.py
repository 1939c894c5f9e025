"""What bash, zsh and fish complete behind `memlog`, from its option tables."""
import re

# What a value or an operand is, by how help calls it.
KINDS = (
    (r"\bPROGRAM\b", "program"),
    (r"\bCOMMAND\b", "command"),
    (r"\b(DUMP|FROM|TO)\b", "dump"),
    (r"\bDIR\b", "folder"),
    (r"\bPID\b", "process"),
    (r"\b(FILE|PATH)\b", "file"),
)


def kind_of(text):
    return next((kind for pattern, kind in KINDS if re.search(pattern, text)), "")


def operands_of(table):
    """Of a command: the kinds of its words that are no options, the likeliest first."""
    return kind_of(re.sub(r"\[OPTIONS\]|--\S+", "", table["usage"]))


def values_of(option):
    """(words, kind) of an option's value; None: it has none."""
    if option["kind"] in ("flag", "choice", "action"):
        return None
    return option.get("words", []), kind_of(option.get("value") or "")


def negatives(table):
    """The negative forms of a command's flags: offered only once a word begins like one."""
    return [option["negative"] for option in table["options"] if "negative" in option]


def spellings(option):
    return [option["short"], option["name"]] if "short" in option else [option["name"]]


# ---- bash

BASH = r"""# bash completion of memlog. Made from its option tables.

_memlog_of_kind() {
    case $1 in
    program) mapfile -t COMPREPLY < <(compgen -c -f -- "$2") ;;
    command) mapfile -t COMPREPLY < <(compgen -W "$_memlog_commands" -- "$2") ;;
    process) mapfile -t COMPREPLY < <(compgen -W "$(ps -u "$(id -u)" -o pid= 2> /dev/null)" -- "$2") ;;
    folder) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    dump) mapfile -t COMPREPLY < <(compgen -f -X '!*.pftrace' -- "$2"; compgen -d -- "$2") ;;
    file) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    *) COMPREPLY=() ;;
    esac
    [[ $1 == command ]] || compopt -o filenames 2> /dev/null
}

_memlog() {
    local IFS=$' \t\n' word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD-1]}
    local options="" negatives="" values="" operands="" value="" i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$_memlog_commands" -- "$word")
        return
    fi
    case $command in
@CASES@
    *) return ;;
    esac
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ $operands == program && (${COMP_WORDS[i]} == -- || ${COMP_WORDS[i]} != -* && ${COMP_WORDS[i-1]} != = && ${COMP_WORDS[i]} != =) ]]; then
            if [[ ${COMP_WORDS[i]} == -- ]] && ((i == COMP_CWORD - 1)); then
                _memlog_of_kind program "$word"
            elif [[ ${COMP_WORDS[i]} == -- ]]; then
                compopt -o filenames 2> /dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
            fi
            [[ ${COMP_WORDS[i]} == -- ]] && return
        fi
    done
    # "--name=value" comes as three words, unless = is no word break.
    if [[ $word == = ]]; then
        value=$before word=""
    elif [[ $before == = ]]; then
        value=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $word == --*=* ]]; then
        value=${word%%=*}
    elif [[ $before == -* ]]; then
        value=$before
    fi
    if [[ -n $value && " $values" =~ [[:space:]]"$value"=([^[:space:]]*) ]]; then
        local accepts=${BASH_REMATCH[1]}
        if [[ $word == --*=* ]]; then
            word=${word#*=}
        fi
        if [[ $accepts == :* ]]; then
            _memlog_of_kind "${accepts#:}" "$word"
        else
            mapfile -t COMPREPLY < <(compgen -W "${accepts//|/ }" -- "$word")
        fi
        return
    fi
    if [[ $word == --no-* ]]; then
        options+=" $negatives"
    fi
    if [[ $word == -* || -z $operands ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        if [[ ${COMPREPLY[0]:-} == *= ]]; then
            compopt -o nospace 2> /dev/null
        fi
        return
    fi
    _memlog_of_kind "$operands" "$word"
}
complete -F _memlog memlog
"""


def bash_case(table):
    options, values = [], []
    for option in table["options"]:
        taken = values_of(option)
        for spelling in spellings(option):
            with_value = taken is not None and spelling.startswith("--") and not option.get("value_optional")
            options.append(spelling + ("=" if with_value else ""))
            if taken is not None:
                words, kind = taken
                values.append(f"{spelling}={'|'.join(words) if words else ':' + kind}")
    return f"""    {table['command']})
        options="{' '.join(options)}"
        negatives="{' '.join(negatives(table))}"
        values="{' '.join(values)}"
        operands="{operands_of(table)}"
        ;;"""


def bash(tables):
    commands = " ".join(table["command"] for table in tables)
    return BASH.replace("@CASES@", "\n".join(map(bash_case, tables))) + f'_memlog_commands="{commands}"\n'


# ---- zsh

ZSH_KINDS = {
    "program": "_command_names -e",
    "command": "_memlog_commands",
    "process": "_pids",
    "folder": "_files -/",
    "dump": "_files -g '*.pftrace(-.) *(-/)'",
    "file": "_files",
    "": " ",
}

ZSH = r"""#compdef memlog
# zsh completion of memlog. Made from its option tables.

_memlog_commands() {
    local -a commands
    commands=(
@COMMANDS@
    )
    _describe -t commands command commands
}

_memlog() {
    local curcontext=$curcontext state line
    local -a negatives
    _arguments -C '(- *)--help[the commands]' '(- *)--version[name the version]' '1: :_memlog_commands' '*:: :->rest'
    [[ $state == rest ]] || return
    curcontext=${curcontext%:*}-$words[1]:
    case $words[1] in
@CASES@
    esac
}

_memlog "$@"
"""


def zsh_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_words(text):
    """For a place where : [ ] mean something."""
    return re.sub(r"([\\:\[\]])", r"\\\1", text)


def zsh_option(option):
    taken = values_of(option)
    lines = []
    for spelling in spellings(option):
        text = spelling
        if taken is not None:
            text += "=" if spelling.startswith("--") else "+"
        if taken is not None and option.get("value_optional"):
            text = spelling + "=-"
        text += f"[{zsh_words(option['help'])}]"
        if taken is not None:
            words, kind = taken
            action = f"({' '.join(words)})" if words else ZSH_KINDS[kind]
            text += f"{'::' if option.get('value_optional') else ':'}{zsh_words(option.get('value') or 'value')}:{action}"
        lines.append("            " + zsh_quoted("*" + text))
    return lines


def zsh_case(table):
    lines = [f"    {table['command']})"]
    if negatives(table):
        lines.append(f"        [[ $PREFIX == --no-* ]] && negatives=({' '.join(map(zsh_quoted, negatives(table)))})")
    lines.append("        _arguments -s -S : $negatives \\")
    for option in table["options"]:
        lines += [line + " \\" for line in zsh_option(option)]
    operands = operands_of(table)
    if operands == "program":
        lines.append("            '(-)1:program:_command_names -e' '*::arguments:_normal'")
    else:
        lines.append(f"            {zsh_quoted('*:' + (operands or 'nothing') + ':' + ZSH_KINDS[operands])}")
    return "\n".join([*lines, "        ;;"])


def zsh(tables):
    commands = "\n".join("        " + zsh_quoted(f"{table['command']}:{table['summary']}") for table in tables)
    return ZSH.replace("@COMMANDS@", commands).replace("@CASES@", "\n".join(map(zsh_case, tables)))


# ---- fish

FISH_KINDS = {
    "program": "(__fish_complete_command)",
    "command": "(__memlog_commands)",
    "process": "(__fish_complete_pids)",
    "folder": "(__fish_complete_directories)",
    "dump": "(__fish_complete_suffix .pftrace)",
    "file": "",
}


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(command, option):
    taken = values_of(option)
    line = f"complete -c memlog -n '__fish_seen_subcommand_from {command}'"
    if "short" in option:
        line += f" -s {option['short'][1:]}"
    line += f" -l {option['name'][2:]}"
    if taken is not None:
        words, kind = taken
        line += "" if option.get("value_optional") else " -r"
        if words:
            line += f" -f -a {fish_quoted(' '.join(words))}"
        elif kind != "file":
            line += " -f" + (f" -a {fish_quoted(FISH_KINDS[kind])}" if kind else "")
        else:
            line += " -F"
    return f"{line} -d {fish_quoted(option['help'])}"


def fish(tables):
    lines = ["# fish completion of memlog. Made from its option tables.", "function __memlog_commands"]
    lines += [f"    printf '%s\\t%s\\n' {table['command']} {fish_quoted(table['summary'])}" for table in tables]
    lines += ["end", "complete -c memlog -f", "complete -c memlog -n __fish_use_subcommand -a '(__memlog_commands)'"]
    for table in tables:
        operands = operands_of(table)
        if operands:
            files = " -F" if operands in ("file", "dump") else ""
            words = f" -a {fish_quoted(FISH_KINDS[operands])}" if FISH_KINDS[operands] else ""
            lines.append(f"complete -c memlog -n '__fish_seen_subcommand_from {table['command']}'{files}{words}")
        lines += [fish_option(table["command"], option) for option in table["options"]]
        begun = f"__fish_seen_subcommand_from {table['command']}; and string match -q -- '--no-*' (commandline -ct)"
        lines += [f"complete -c memlog -n {fish_quoted(begun)} -l {negative[2:]}" for negative in negatives(table)]
    return "\n".join(lines) + "\n"

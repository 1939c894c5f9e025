"""Man pages and completions (tools/dev/manuals) hold what memlog's option tables do, as mandoc, bash, zsh and fish read them."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

OUT = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", "out")).resolve()
SHARE = OUT / "share"
BASH = SHARE / "bash-completion" / "completions" / "memlog"
FISH = SHARE / "fish" / "vendor_completions.d" / "memlog.fish"
ZSH = SHARE / "zsh" / "site-functions"
TIMEOUT = 60

# Completes each of its words' lines as bash would: split at blanks and =, the last word unfinished.
BASH_ASKS = r"""
source "$1"
shift
for line in "$@"; do
    mapfile -t COMP_WORDS < <(printf '%s' "$line" | sed 's/=/\n=\n/g; s/ /\n/g' | sed '/^$/d')
    [[ $line == *[\ =] ]] && COMP_WORDS+=("")
    [[ $line == *= ]] && unset 'COMP_WORDS[-1]'
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _memlog
    printf '%s\n' "${COMPREPLY[*]}"
done
"""

# Types a line and a tab into an interactive shell, and prints what the line has become.
ZSH_ASKS = r"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; stty -echo; unset zle_bracketed_paste; fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; setopt noautomenu nolistambiguous noautolist"
zpty -w z 'tell() { print -r -- "<$BUFFER>"; BUFFER=""; zle accept-line }; zle -N tell; bindkey "^X" tell; bindkey "^I" complete-word; cd '$2'; print READ""Y'
shift 2
while zpty -r z said; do [[ $said == *READY* ]] && break; done
for line in "$@"; do
    zpty -w -n z "$line"$'\t\x18'
    while zpty -r z said; do [[ $said == *'<memlog'* ]] && break; done
    print -r -- "${${said##*<}%%>*}"
done
"""


def tables():
    lines = subprocess.run([OUT / "memlog", "help", "--dump-options"], stdout=subprocess.PIPE, check=True, timeout=TIMEOUT).stdout.splitlines()
    return [table for table in map(json.loads, lines) if table["program"] == "memlog"]


def said(*words, **how):
    answer = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT, check=True, **how)
    return answer.stdout.splitlines()


@unittest.skipUnless(SHARE.exists(), "this build has no manuals")
class Manuals(unittest.TestCase):
    def test_each_command_has_a_page_with_each_of_its_options(self):
        overview = (SHARE / "man" / "man1" / "memlog.1").read_text()
        for table in tables():
            page = SHARE / "man" / "man1" / f"memlog-{table['command']}.1"
            self.assertIn(f"memlog-{table['command']}".replace("-", "\\-"), overview)
            text = page.read_text()
            self.assertEqual("\\fIFLAG\\fR" in text, any("negative" in option for option in table["options"]), page.name)
            for option in table["options"]:
                self.assertIn("\\fB" + option["name"].replace("-", "\\-") + "\\fR", text, page.name)

    @unittest.skipUnless(shutil.which("mandoc"), "needs mandoc")
    def test_mandoc_finds_nothing_wrong_and_shows_what_help_says(self):
        for page in sorted((SHARE / "man" / "man1").glob("*.1")):
            lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], stdout=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT).stdout
            self.assertEqual([line for line in lint.splitlines() if "missing date" not in line], [], page.name)  # it has none, so that builds are the same
        plain = said("mandoc", "-T", "ascii", SHARE / "man" / "man1" / "memlog-run.1")
        text = " ".join(re.sub(".\b", "", "\n".join(plain)).split())
        for option in next(table for table in tables() if table["command"] == "run")["options"]:
            self.assertIn(" ".join(option["help"].split())[:20], text)

    def asked(self):
        """Lines, and what must be offered behind them."""
        return {
            "memlog rep": {"report"},
            "memlog attac": {"attach"},
            "memlog report --so": {"--sort="},
            "memlog report --sort=tem": {"temporary"},
            "memlog run --memlog-stack-mode=mi": {"mixed"},
            "memlog help symb": {"symbolize"},
            "memlog page fold": {"folder"},
            "memlog report --no-js": {"--no-json"},
            "memlog report one": {"one.pftrace"},
        }

    def setUp(self):
        self.folder = OUT / "manuals_test"
        (self.folder / "folder").mkdir(parents=True, exist_ok=True)
        for name in ("one.pftrace", "one.txt"):
            (self.folder / name).touch()
        self.addCleanup(shutil.rmtree, self.folder)

    def test_bash_completes(self):
        asked = self.asked() | {"memlog report ": {"one.pftrace", "folder"}, "memlog run -- python3 one": {"one.pftrace", "one.txt"},
                                "memlog run --frames=": {"native", "python"}, "memlog run --frames ": {"native", "python"}, "memlog nothing ": set()}
        answers = said("bash", "-c", BASH_ASKS, "bash", BASH, *asked, cwd=self.folder)
        self.assertEqual(dict(zip(asked, map(set, map(str.split, answers)))), asked)
        (own,) = said("bash", "-c", BASH_ASKS, "bash", BASH, "memlog stop ", cwd=self.folder)
        self.assertIn(str(os.getpid()), own.split())
        for table in tables():
            if table["usage"].startswith("--dry-run"):
                continue
            (options,) = said("bash", "-c", BASH_ASKS, "bash", BASH, f"memlog {table['command']} --", cwd=self.folder)
            self.assertEqual({option["name"] for option in table["options"]} - {word.rstrip("=") for word in options.split()}, set(), table["command"])

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish_completes(self):
        home = {"HOME": str(self.folder), "PATH": os.environ["PATH"]}
        for line, wanted in self.asked().items():
            answers = said("fish", "-N", "-c", f"source {FISH}; complete -C {line!r}", cwd=self.folder, env=home)
            words = {answer.split("\t")[0].split("=")[-1] if "=" in line else answer.split("\t")[0].rstrip("/") for answer in answers}
            self.assertLessEqual({word.rstrip("=") for word in wanted}, words, line)

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh_completes(self):
        asked = self.asked()
        answers = said("zsh", "-f", "-c", ZSH_ASKS, "zsh", ZSH, self.folder, *asked, env=os.environ | {"TERM": "dumb"})
        for (line, (wanted,)), answer in zip(asked.items(), answers, strict=True):
            self.assertEqual(answer.rstrip(" /"), line[: max(line.rfind(" "), line.rfind("=") if "=" in wanted or "=" in line else -1) + 1] + wanted, line)


if __name__ == "__main__":
    unittest.main(verbosity=2)

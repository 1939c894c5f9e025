"""Print the compiler's multiarch directory name, so that no BUILD.gn writes it out."""
import subprocess
import sys

print(subprocess.check_output([sys.argv[1], "-print-multiarch"], text=True).strip() or "x86_64-linux-gnu")

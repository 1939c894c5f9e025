"""Run idlc: GN's actions start scripts only. Arguments: the binary, then its own."""
import os
import sys

os.execv(os.path.abspath(sys.argv[1]), sys.argv[1:])

#!/usr/bin/env python3
"""Writes an assembler file that makes a text part of a program: embed.py FILE SYMBOL OUTPUT"""

import pathlib
import sys

path, symbol, output = sys.argv[1:]
pathlib.Path(output).write_text(f"""\
        .section .rodata
        .global {symbol}
{symbol}:
        .incbin "{pathlib.Path(path).resolve()}"
        .byte 0
        .section .note.GNU-stack,"",@progbits
""")

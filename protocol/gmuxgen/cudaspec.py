"""Reads protocol/cuda.api. Errors name file and line."""

import re
from dataclasses import dataclass, field

from .spec import SpecError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|[0-9]+)\Z")
BUILTIN = set("void char short int long signed unsigned float double const size_t uint32_t uint64_t".split())
TYPES = ("opaque", "alias", "callback", "const", "enum", "struct", "union")
TIERS = ("impl", "none")
TWINS = ("ptsz", "ptds")


@dataclass
class Param:
    direction: str  # in, out, inout
    count: str      # how many objects: "" for one, else a number or another parameter
    type: str       # "const void *"
    name: str

    @property
    def decl(self):
        return self.type + ("" if self.type.endswith("*") else " ") + self.name


@dataclass
class Function:
    tier: str
    symbol: str
    base: str
    since: int
    twins: dict     # "ptsz" or "ptds" -> the version it exists since
    early: bool
    params: list
    line: int
    elsewhere: bool = False  # the toolkit declares it in a header other than cuda.h
    only: str = ""           # "gpu" or "refuses": where not to expect anything of it

    @property
    def args(self):
        return ", ".join(p.decl for p in self.params) or "void"

    @property
    def names(self):
        return ", ".join(p.name for p in self.params)

    @property
    def symbols(self):
        return [self.symbol] + [f"{self.symbol}_{t}" for t in self.twins]


@dataclass
class Type:
    kind: str
    name: str
    line: int
    tag: str = ""
    text: str = ""   # alias: the type; const: the expression; callback: the result
    params: list = field(default_factory=list)
    values: list = field(default_factory=list)   # enum: (name, number as written, text)
    members: list = field(default_factory=list)  # struct, union: Member or Type
    elsewhere: bool = False


@dataclass
class Member:
    type: str
    name: str
    array: str  # "[16]" or ""
    align: int


@dataclass
class Spec:
    version: int
    types: list
    functions: list
    header: dict  # base -> symbol that the name means in C source
    exports: list  # symbols of our own
    before: dict  # base -> a version, and the symbol that the name means where CUDA_VERSION is below it

    def of(self, kind):
        return [t for t in self.types if t.kind == kind]

    def enum(self, name):
        return next(t for t in self.types if t.kind == "enum" and t.name == name)

    def by_base(self):
        """Base name -> its variants, oldest first."""
        bases = {}
        for f in self.functions:
            bases.setdefault(f.base, []).append(f)
        return {b: sorted(v, key=lambda f: f.since) for b, v in bases.items()}


class Parser:
    def __init__(self, path):
        self.path = path
        self.version = None
        self.types = []
        self.functions = []
        self.header = {}
        self.exports = []
        self.names = {}    # types, constants and enum values: name -> line
        self.symbols = {}  # functions and their twins: symbol -> line
        self.variants = {}
        self.before = {}
        self.header_lines = {}
        self.elsewhere = False

    def fail(self, n, why):
        raise SpecError(self.path, n, why)

    def name(self, n, word, what):
        if not NAME.match(word):
            self.fail(n, f"'{word}' is not a name for {what}")
        return word

    def claim(self, n, name):
        if name in self.names:
            self.fail(n, f"{name} is already defined in line {self.names[name]}")
        self.names[name] = n

    # Splits "const void *p[4]" into type, name and array; every type must be known by now.
    def declaration(self, n, text):
        m = re.match(r"(.*?[\s*])([A-Za-z_]\w*)((?:\[[^\[\]]*\])*)\Z", text.strip())
        if not m:
            self.fail(n, f"'{text.strip()}' is not a declaration")
        kind = re.sub(r"\s*(\*+)\s*\Z", r" \1", m[1]).strip()
        self.known(n, kind)
        return kind, m[2], m[3]

    def known(self, n, kind):
        for word in re.findall(r"\w+", kind):
            if word not in BUILTIN and word not in self.names:
                self.fail(n, f"unknown type '{word}'")
        if re.sub(r"[\w\s*]", "", kind):
            self.fail(n, f"'{kind}' is not a type")

    def parameters(self, n, text, directions):
        text = text.strip()
        if not text.startswith("(") or not text.endswith(")"):
            self.fail(n, "parameters must be in parentheses")
        text = text[1:-1].strip()
        if text == "void":
            return []
        params = []
        for part in text.split(","):
            direction, count = "in", ""
            m = re.match(r"\s*(out|inout)(?:\[(\w+)\])?\s+(.*)", part)
            if m and directions:
                direction, count, part = m[1], m[2] or "", m[3]
            kind, name, array = self.declaration(n, part)
            if array:
                self.fail(n, f"parameter {name} is an array: write a pointer")
            if direction != "in" and (not kind.endswith("*") or (kind.startswith("const") and kind.count("*") == 1)):
                self.fail(n, f"parameter {name} is marked '{direction}' but cannot be written through")
            if any(p.name == name for p in params):
                self.fail(n, f"parameter {name} is already there")
            params.append(Param(direction, count, kind, name))
        for p in params:
            if p.count and not p.count.isdigit() and not any(p.count == other.name for other in params):
                self.fail(n, f"there is no parameter {p.count} to count {p.name}")
        return params

    def since(self, n, word):
        if not re.match(r"[0-9]{4,5}\Z", word):
            self.fail(n, f"'{word}' is not a CUDA version such as 3020 or 13000")
        return int(word)

    def function(self, n, text):
        head, paren, rest = text.partition("(")
        words = head.split()
        if not paren:
            self.fail(n, "function without parameters: write (void)")
        if len(words) < 3 or "@" not in words[2]:
            self.fail(n, "a function is TIER SYMBOL [BASE]@SINCE ... (PARAMETERS)")
        symbol = self.name(n, words[1], "a function")
        base, _, since = words[2].partition("@")
        f = Function(words[0], symbol, self.name(n, base or symbol, "a function"), self.since(n, since), {}, False, [], n, self.elsewhere)
        for word in words[3:]:
            twin, at, version = word.partition("@")
            if word == "early":
                f.early = True
            elif word in ("gpu", "refuses") and f.tier == "impl" and not f.only:
                f.only = word
            elif at and twin in TWINS:
                if twin in f.twins:
                    self.fail(n, f"{twin} is already there")
                f.twins[twin] = self.since(n, version)
            else:
                self.fail(n, f"unexpected '{word}'")
        f.params = self.parameters(n, "(" + rest, True)
        for s in f.symbols:
            if s in self.symbols:
                self.fail(n, f"function {s} is already in line {self.symbols[s]}")
            self.symbols[s] = n
        same = self.variants.setdefault((f.base, f.since), f)
        if same is not f:
            self.fail(n, f"{f.base} has a variant of version {f.since} already: {same.symbol}")
        self.functions.append(f)

    def statement(self, n, text, block):
        words = text.split()
        head = words[0]
        if head in TIERS:
            return self.function(n, text)
        if head == "cuda":
            if len(words) != 2 or self.version is not None:
                self.fail(n, "cuda needs one version, once")
            self.version = self.since(n, words[1])
        elif head == "header":
            if len(words) != 3:
                self.fail(n, "header needs NAME SYMBOL")
            self.header[words[1]] = words[2]
            self.header_lines[words[1]] = n
        elif head == "before":
            if len(words) != 4:
                self.fail(n, "before needs VERSION NAME SYMBOL")
            self.before[words[2]] = self.since(n, words[1]), words[3]
            self.header_lines[words[2]] = n
        elif head == "export":
            if len(words) != 2 or words[1] in self.symbols:
                self.fail(n, "export needs a new NAME")
            self.symbols[self.name(n, words[1], "a symbol")] = n
            self.exports.append(words[1])
        elif head == "elsewhere":
            if len(words) != 1:
                self.fail(n, f"unexpected '{words[1]}'")
            self.elsewhere = True
        elif head in TYPES:
            if len(words) < 2:
                self.fail(n, f"{head} needs a name")
            t = Type(head, self.name(n, words[1], head), n, elsewhere=self.elsewhere)
            if head in ("enum", "struct", "union"):
                if len(words) > 3:
                    self.fail(n, f"unexpected '{words[3]}'")
                t.tag = self.name(n, words[2], "a tag") if len(words) == 3 else ""
                self.claim(n, t.name)
                if head == "enum":
                    self.enumeration(t, block)
                else:
                    self.members(t, block, 0, 0)
            else:
                rest = text.split(None, 2)[2] if len(words) > 2 else ""
                if not rest:
                    self.fail(n, f"{head} {t.name} is not complete")
                if head == "callback":
                    t.text, _, params = rest.partition("(")
                    t.text = t.text.strip()
                    self.known(n, t.text)
                    t.params = self.parameters(n, "(" + params, False)
                elif head == "alias":
                    self.known(n, rest)
                    t.text = rest
                elif head == "opaque":
                    t.tag = self.name(n, rest, "a tag")
                else:
                    t.text = rest
                self.claim(n, t.name)
            self.types.append(t)
        else:
            self.fail(n, f"unknown word '{head}'")

    def enumeration(self, t, block):
        for n, _, text in block:
            m = re.match(r'(\S+)\s+(\S+)(?:\s+"([^"\\]*)")?\Z', text)
            if not m or not NAME.match(m[1]):
                self.fail(n, 'an enum value is NAME NUMBER ["text"]')
            if not NUMBER.match(m[2]):
                self.fail(n, f"'{m[2]}' is not a number")
            self.claim(n, m[1])
            t.values.append((m[1], m[2], m[3] or ""))
        if not t.values:
            self.fail(t.line, f"enum {t.name} has no values")

    def members(self, t, block, i, depth):
        """Reads lines of `block` from i on that are indented more than depth; answers the next i."""
        if i == len(block) or block[i][1] <= depth:
            self.fail(t.line, f"{t.kind} {t.name} has no members".replace("  ", " "))
        here = block[i][1]
        while i < len(block) and block[i][1] >= here:
            n, indent, text = block[i]
            if indent != here:
                self.fail(n, "indented too far")
            words = text.split()
            if words[0] in ("struct", "union"):
                if len(words) > 3:
                    self.fail(n, f"unexpected '{words[3]}'")
                for word in words[1:]:
                    self.name(n, word, "a member")
                inner = Type(words[0], words[1] if len(words) > 1 else "", n, words[2] if len(words) > 2 else "")
                i = self.members(inner, block, i + 1, here)
                t.members.append(inner)
                continue
            align = 0
            if words[0] == "align":
                if len(words) < 3 or not words[1].isdigit():
                    self.fail(n, "align needs a number and a declaration")
                align = int(words[1])
                text = text.split(None, 2)[2]
            kind, name, array = self.declaration(n, text)
            if any(m.name == name for m in t.members):
                self.fail(n, f"member {name} is already there")
            t.members.append(Member(kind, name, array, align))
            i += 1
        if i < len(block) and block[i][1] > depth:
            self.fail(block[i][0], "indented to no known depth")
        return i

    def finish(self):
        if self.version is None:
            self.fail(1, "no cuda version")
        bases = {}
        for f in self.functions:
            bases.setdefault(f.base, []).append(f)
        for base, symbol in [*self.header.items(), *((b, s) for b, (_, s) in self.before.items())]:
            if base not in bases:
                self.fail(self.header_lines[base], f"there is no function {base}")
            if symbol not in self.symbols:
                self.fail(self.header_lines[base], f"there is no function {symbol}")
        for f in self.functions:
            if f.since > self.version or any(v > self.version for v in f.twins.values()):
                self.fail(f.line, f"{f.symbol} is newer than version {self.version}")
        return Spec(self.version, self.types, self.functions, self.header, self.exports, self.before)


def parse(path, text):
    parser = Parser(path)
    first = None  # (line, text) of the statement being collected
    block = []    # its indented lines: (line, indent, text)

    def flush():
        if first:
            n, statement = first
            if statement.split()[0] in TYPES:
                parser.statement(n, statement, block)
            else:
                parser.statement(n, " ".join([statement] + [b[2] for b in block]), [])

    for n, raw in enumerate(text.splitlines(), 1):
        code = raw.partition("#")[0].rstrip()
        if not code:
            continue
        if "\t" in code:
            raise SpecError(path, n, "tab")
        if raw[0] != " ":
            flush()
            first, block = (n, code), []
        elif not first:
            raise SpecError(path, n, "indented line without a statement before it")
        else:
            block.append((n, len(code) - len(code.lstrip()), code.strip()))
    flush()
    return parser.finish()

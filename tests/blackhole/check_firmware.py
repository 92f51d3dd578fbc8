#!/usr/bin/env python3
"""Check the firmware's sources and machine code against the rules list of docs/blackhole.md.

The simulator models no timing: a wait that the silicon needs and the source lacks would never show there. So the
rules are checked on the text: every register write and every wait pattern, function by function, and the instructions
that the cores must not execute, in the compiled programs.

    check_firmware.py SOURCE_DIR DOC [ELF_DIR OBJDUMP]   check; exit status 1 and one line a violation
    check_firmware.py --self-test SOURCE_DIR DOC         break the sources rule by rule, and see that each break is found
"""
import functools
import re
import subprocess
import sys
from pathlib import Path

PUSH_LIMIT = 16  # stores to the instruction FIFO before an inline instruction holds the core back
PROGRAMS = ["unpack", "math", "pack", "brisc", "ncrisc", "feeder"]
HEADERS = ["chip.h", "tile.h", "start.h", "tensix.h", "noc.h", "float.h", "taps.h"]
# Configuration words that hang or fault (study of the simulator's list; none is needed).
FORBIDDEN_WORDS = {4, 5, 6, 7, 8, 9, 10, 11, 16, 19, 32, 33, 34, 35, 40, 41, 42, 43, 48, 49, 58, 60, 61, 66, 67, 74, 75,
                   114, 115, 122, 123}
# Functions that start NoC transfers and leave the waiting to their caller.
STARTS_ONLY = {"noc_read", "noc_write", "noc_signal", "noc_go", "halo_piece", "halo_plane", "write_scores", "suppress"}


@functools.lru_cache(maxsize=None)
def strip_comments(text):
    return re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def functions(text):
    """(name, body, line) of every function definition."""
    for m in re.finditer(r"^(?=[A-Za-z_])[^\n;{}#]*?\b(\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*\{$", text, flags=re.M):
        depth, i = 1, m.end()
        while depth and i < len(text):
            depth += {"{": 1, "}": -1}.get(text[i], 0)
            i += 1
        yield m.group(1), text[m.end():i - 1], text.count("\n", 0, m.start()) + 1


def statements(body):
    """Statements in textual order, white space squeezed; loop and condition heads are statements too."""
    flat = re.sub(r"\s+", " ", body)
    out, depth, start = [], 0, 0
    for i, c in enumerate(flat):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if depth == 0 and (c in ";{}" or (c == "," and re.match(r"\s*PUSH\(", flat[start:i + 1] or ""))):
            piece = flat[start:i].strip()
            if piece:
                out.append(piece)
            start = i + 1
    return out


@functools.lru_cache(maxsize=None)
def parse(text):
    """(name, body, line, statements) of every function; sources are parsed once, however often they are checked."""
    return [(name, body, line, statements(body)) for name, body, line in functions(text)]


class Check:
    def __init__(self, sources, doc):
        self.sources = {name: strip_comments(text) for name, text in sources.items()}
        self.raw, self.doc, self.errors = sources, doc, []

    def fail(self, rule, where, what):
        self.errors.append(f"[{rule}] {where}: {what}")

    def all_functions(self):
        for name, text in self.sources.items():
            for function, body, line, lines in parse(text):
                yield f"{name}:{line} {function}", function, body, lines

    def run(self):
        for rule in (self.addresses, self.forbidden_words, self.config_writes, self.config_order, self.pushes,
                     self.pack_rebase, self.sfpu, self.handover, self.polls, self.transfers, self.signals, self.go_order,
                     self.inline_writes, self.multicast, self.start, self.tags):
            rule()
        return self.errors

    def addresses(self):
        """Device addresses have names, in the headers."""
        for name, text in self.sources.items():
            if name.endswith(".c"):
                for m in re.finditer(r"0xFF[0-9A-F]{6}u?\b", text):
                    self.fail("named", name, f"bare address {m.group()}")

    def forbidden_words(self):
        for m in re.finditer(r"(CONFIG_\w+) = (\d+)", self.sources["tensix.h"]):
            if int(m.group(2)) in FORBIDDEN_WORDS:
                self.fail("config-words", "tensix.h", f"{m.group(1)} is word {m.group(2)}, which must not be touched")

    def config_writes(self):
        """A configuration word changes only while its unit is idle, and the unit waits for it: [rebase]."""
        for where, function, body, lines in self.all_functions():
            if function == "configure":
                continue
            for i, line in enumerate(lines):
                if not re.match(r"CONFIG\(", line):
                    if "CONFIG(" in line and "=" not in line:
                        self.fail("config-order", where, "the configuration cannot be read back")
                    continue
                if not any(l.startswith("DRAIN()") for l in lines[max(0, i - 1):i]):
                    self.fail("rebase", where, f"no DRAIN() right before {line}")
                unit = {"unpack.c": "HOLD_UNPACK", "pack.c": "HOLD_PACK"}[where.split(":")[0]]
                if not any(re.search(rf"STALLWAIT\({unit}, UNTIL_RISC_CONFIG_WRITTEN\)", l) for l in lines[i + 1:i + 2]):
                    self.fail("rebase", where, f"{unit} does not wait for the write right after {line}")

    def config_order(self):
        for where, function, body, lines in self.all_functions():
            for i, line in enumerate(lines):
                if line.startswith("MB->configured = ") and not lines[i - 1].startswith("FENCE()"):
                    self.fail("config-order", where, "no FENCE() before configured is set")

    def pushes(self):
        """Stores to the FIFO are followed by an inline instruction soon enough: [push]."""
        for where, function, body, lines in self.all_functions():
            pending, loop = 0, 1
            for line in lines:
                times = loop
                m = re.search(r"for \(u32 i = 0; i < (\d+); i\+\+\)", line)
                loop = int(m.group(1)) if m else 1
                if m and "PUSH(" in line:
                    times, loop = loop, 1
                pending += times * len(re.findall(r"\bPUSH\(", line))
                if pending > PUSH_LIMIT:
                    self.fail("push", where, f"more than {PUSH_LIMIT} stores to the FIFO without an inline instruction")
                    break
                if re.search(r"\bTTI\(", line):
                    pending = 0
            for m in re.finditer(r"\bfor \([^{}]*?\) \{", re.sub(r"\s+", " ", body)):
                flat = re.sub(r"\s+", " ", body)
                depth, end = 1, m.end()
                while depth:
                    depth += {"{": 1, "}": -1}.get(flat[end], 0)
                    end += 1
                if "PUSH(" in flat[m.end():end] and "TTI(" not in flat[m.end():end]:
                    self.fail("push", where, "a loop of stores to the FIFO without an inline instruction in it")
            if pending and "TTI(" in body:
                self.fail("push", where, "ends with stores to the FIFO and no inline instruction after them")

    def pack_rebase(self):
        for where, function, body, lines in self.all_functions():
            for i, line in enumerate(lines):
                if "WRCFG(" not in line:
                    continue
                before, after = lines[i - 1], lines[i + 1:i + 3]
                if not ("HOLD_CONFIG" in before and "UNTIL_THCON_IDLE" in before and "UNTIL_PACKER_IDLE" in before):
                    self.fail("pack-rebase", where, "WRCFG without waiting for register write and packer")
                if [bool(re.search("DMANOP", l)) for l in after] != [True, True]:
                    self.fail("pack-rebase", where, "WRCFG without two DMANOPs after it")

    def sfpu(self):
        for where, function, body, lines in self.all_functions():
            for i, line in enumerate(lines):
                if re.search(r"SFPMAX\(|SFPTRANSP", line) and "SFPNOP" not in (lines + [""])[i + 1]:
                    self.fail("sfpu-hazard", where, f"no SFPNOP after {line}")
            if function == "pool_block" and not ("HOLD_SFPU" in lines[0] and "UNTIL_FPU_IDLE" in lines[0]):
                self.fail("fpu-sfpu", where, "the SFPU does not wait for the FPU")
        for callee, caller in (("pool_half", "pool_parity"), ("pool_parity", "pool_plane"), ("pool_plane", "pool_block")):
            for where, function, body, lines in self.all_functions():
                if re.search(rf"\b{callee}\(", body) and function != caller:
                    self.fail("fpu-sfpu", where, f"{callee} outside {caller}: only pool_block waits for the FPU")

    def handover(self):
        for where, function, body, lines in self.all_functions():
            for i, line in enumerate(lines):
                m = re.search(r"\bSEM(POST|GET)\(", line)
                if not m:
                    continue
                wanted = {"POST": ("UNTIL_FPU_IDLE", "UNTIL_SFPU_IDLE"), "GET": ("UNTIL_PACKER_IDLE",)}[m.group(1)]
                if "HOLD_SYNC" not in lines[i - 1] or not all(w in lines[i - 1] for w in wanted):
                    self.fail("dst-handover", where, f"{line} without waiting for {' and '.join(wanted)}")
            flat = " ".join(lines)
            if "SEMPOST(" in flat and not re.search(r"SEMWAIT\(HOLD_MATH \| HOLD_CONFIG, SEMAPHORE_DST, WHILE_MAX\).*"
                                                    r"STALLWAIT\(HOLD_CONFIG \| HOLD_MATH, UNTIL_FPU_IDLE \| "
                                                    r"UNTIL_SFPU_IDLE\).*THREAD_MATH_DST_OFFSET.*ZEROACC", flat):
                self.fail("dst-handover", where, "a half of Dst is cleared before it is free and the units are idle")
            if "SEMGET(" in flat and not re.search(r"SEMWAIT\(HOLD_PACK \| HOLD_CONFIG, SEMAPHORE_DST, WHILE_ZERO\).*"
                                                   r"pack_plane\(", flat):
                self.fail("dst-handover", where, "a half of Dst is packed before it is filled")

    def polls(self):
        """A loop that polls L1 drops the data cache each time round: [fence]. Registers are not cached."""
        for where, function, body, lines in self.all_functions():
            flat = re.sub(r"\s+", " ", body)
            for m in re.finditer(r"while \(((?:[^()]|\([^()]*\)|\((?:[^()]|\([^()]*\))*\))*)\)\s*(\{[^}]*\}|[^;{]*;)", flat):
                condition, inside = m.groups()
                if re.search(r"\*counter|MB->", condition) and "FENCE()" not in inside:
                    self.fail("fence", where, f"polls {condition} without FENCE()")

    def transfers(self):
        """Whoever starts a transfer waits for it: [noc-done]."""
        start = re.compile(r"\b(" + "|".join(sorted(STARTS_ONLY - {"noc_go"})) + r")\(")
        for where, function, body, lines in self.all_functions():
            if function in STARTS_ONLY or not start.search(body):
                continue
            last_start = max(i for i, l in enumerate(lines) if start.search(l))
            if not any(l.startswith("noc_wait()") for l in lines[last_start + 1:]):
                self.fail("noc-done", where, "starts a transfer and does not wait for it")
        for where, function, body, lines in self.all_functions():
            if function == "noc_addresses" and not lines[0].startswith("noc_ready()"):
                self.fail("noc-ready", where, "writes the registers of a command that may not have been taken")
            if function == "noc_wait" and not (lines[0].startswith("noc_ready()") and lines[-1].startswith("FENCE()")
                                               and "while (NOC_OUTSTANDING(NOC_OWN_ID))" in lines):
                self.fail("noc-done", where, "does not wait for the command to be taken and answered, or does not fence")

    def signals(self):
        """What another tile or the host is sent has reached L1 first: [signal]."""
        publish = [l for w, f, b, l in self.all_functions() if f == "publish"][0]
        if [bool(re.search(p, l)) for p, l in zip((r"^FENCE\(", r"u32 seen = \*last", "__asm__.*seen", r"^FENCE\("),
                                                  publish)] != [True] * 4:
            self.fail("signal", "start.h publish", "must be a fence, a load that is consumed, a fence")
        for where, function, body, lines in self.all_functions():
            for i, line in enumerate(lines):
                if re.match(r"MB->(brisc_out|ncrisc_out|weights_ready)\.value = ", line) and function != "fetch_group":
                    if not re.match(r"publish\(", (lines + [""])[i + 1]):
                        self.fail("signal", where, f"no publish() right after {line}")

    def go_order(self):
        for where, function, body, lines in self.all_functions():
            for i, line in enumerate(lines):
                if line.startswith("MB->go = ") and not lines[i - 1].startswith("FENCE()"):
                    self.fail("go-order", where, "go is raised before the layer's record is seen")
                if line.startswith("MB->taps_done[core] = ") and not lines[i - 1].startswith("FENCE()"):
                    self.fail("go-order", where, "a share of the taps is called made before it is seen")
                if line.startswith("make_taps(") and "CORE_UNPACK" in line and lines[i + 1] != "wait_taps(number)":
                    self.fail("go-order", where, "unpacks before every core has made its taps")
                if re.match(r"tell_neighbours\(number", line) and not lines[i - 1].startswith("FENCE()"):
                    self.fail("go-order", where, "neighbours are told before the ring is seen")
                if re.match(r"MB->thread_done\[\d\] = ", line) and not lines[i - 1].startswith("DRAIN()"):
                    self.fail("drain", where, "a layer is called done before the Tensix is")
                if line.startswith("MB->weights_used = ") and not lines[i - 1].startswith("DRAIN()"):
                    self.fail("drain", where, "weights are called used before they are unpacked")

    def inline_writes(self):
        if re.search(r"NOC_INLINE|1 << 3,", self.sources["noc.h"]):
            self.fail("signal", "noc.h", "inline writes to L1 are unsafe on this chip")

    def multicast(self):
        for where, function, body, lines in self.all_functions():
            if "NOC_MULTICAST |" not in body:
                continue
            flat = " ".join(lines)
            if "NOC_PATH_RESERVE" not in flat or "NOC_REG(NOC_TAG) = NOC_MULTICAST_ID" not in flat:
                self.fail("multicast-done", where, "a multicast needs a reserved path and an id of its own")
            if "while (NOC_WRITE_ACKS != acks_due)" not in flat:
                self.fail("multicast-done", where, "a multicast is done when all acknowledgements are there")

    def start(self):
        """Every program starts the same way, and says its version before anything else: [start]."""
        for name in PROGRAMS:
            text = self.sources[name + ".c"]
            if not re.search(r"^START\(LOCAL_RAM_TOP_", text, flags=re.M):
                self.fail("start", name + ".c", "no START")
            main = [l for w, f, b, l in self.all_functions() if w.startswith(name + ".c") and f == "main_"]
            if not main or not main[0][0].startswith("report_start("):
                self.fail("start", name + ".c", "main_ does not report its start first")
        if not re.search(r"csrrs zero, 0x7c0.*fence.*csrrs zero, 0x7c0.*csrrc zero, 0x7c0.*fence", self.sources["start.h"],
                         flags=re.S):
            self.fail("start", "start.h", "instruction gathering is not switched off")
        math = [l for w, f, b, l in self.all_functions() if w.startswith("math.c") and f == "prepare"][0]
        if not any("SEMINIT(" in l for l in math) or not any("ZEROACC_ALL" in l for l in math):
            self.fail("start", "math.c", "semaphore and Dst are not put into a known state")

    def tags(self):
        """The list in the document and the marks in the sources are the same."""
        listed = set(re.findall(r"^\| `([a-z0-9-]+)` \|", self.doc, flags=re.M))
        marked = set()
        for text in self.raw.values():
            for comment in re.findall(r"/\*.*?\*/", text, flags=re.S):
                marked |= set(re.findall(r"\[([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\]", comment))
        marked -= {"channel", "row", "pixel", "plane", "group", "block", "height", "width", "cell"}
        for tag in sorted(marked - listed):
            self.fail("list", "docs/blackhole.md", f"[{tag}] is marked in the sources and not in the list")
        self.unmarked = listed - marked


def machine_code(elf_dir, objdump):
    """Instructions that the cores lack or do differently."""
    bad = [(r"\bf(div|sqrt|madd|msub|nmadd|nmsub)\.d|\bfdiv\.s|\bfsqrt\.s", "no such unit"),
           (r"\bfcvt\.wu?\.s\s+\w+,\w+,(?!rne|dyn)\w+", "rounding mode other than to nearest"),
           (r"\bfence\.i\b", "not the way to drop the instruction cache here"),
           (r"\bc\.\w+|\becall|\bebreak|\bwfi|\bmret", "no such instruction")]
    errors = []
    for program in PROGRAMS:
        listing = subprocess.run([objdump, "-d", "-M", "no-aliases", f"{elf_dir}/{program}.elf"], check=True,
                                 capture_output=True, text=True).stdout
        if len(listing) < 1000:
            errors.append(f"[machine] {program}: no listing")
        for line in listing.splitlines():
            fields = line.split("\t")
            for pattern, why in bad:
                if len(fields) > 2 and re.search(pattern, "\t".join(fields[2:])) and ".4byte" not in line:
                    errors.append(f"[machine] {program}: {' '.join(fields[2:])}: {why}")
    return errors


# rule, file, pattern, replacement: a source with this change must be refused for this rule.
BREAKS = [
    ("named", "brisc.c", r"row = picture_row_bytes\(l\)", "row = 0xFFB20000u"),
    ("named", "pack.c", r"GPR_DESTINATION 4u", "GPR_DESTINATION 0xFFEF0000u"),
    ("config-words", "tensix.h", r"CONFIG_PACK_ROWS = 28", "CONFIG_PACK_ROWS = 58"),
    ("rebase", "unpack.c", r"    DRAIN\(\);\n    CONFIG\(word\)", "    CONFIG(word)"),
    ("rebase", "unpack.c", r"    TTI\(STALLWAIT\(HOLD_UNPACK, UNTIL_RISC_CONFIG_WRITTEN\)\);\n", ""),
    ("rebase", "unpack.c", r"HOLD_UNPACK, UNTIL_RISC_CONFIG_WRITTEN\)\);\n\}", "HOLD_PACK, UNTIL_RISC_CONFIG_WRITTEN));\n}"),
    ("rebase", "pack.c", r"        DRAIN\(\);\n        CONFIG", "        CONFIG"),
    ("rebase", "pack.c", r"        TTI\(STALLWAIT\(HOLD_PACK, UNTIL_RISC_CONFIG_WRITTEN\)\);\n", ""),
    ("config-order", "unpack.c", r"    FENCE\(\);( /\* \[config-order\])", r"   \1"),
    ("push", "math.c", r"            TTI\(NOP\);[^\n]*\n", ""),
    ("push", "math.c", r"i < 7; i\+\+", "i < 70; i++"),
    ("pack-rebase", "pack.c", r"    TTI\(STALLWAIT\(HOLD_CONFIG[^\n]*\n", ""),
    ("pack-rebase", "pack.c", r"    TTI\(DMANOP\);\n", "", 1),
    ("sfpu-hazard", "math.c", r"    TTI\(SFPTRANSP\);\n    TTI\(SFPNOP\);", "    TTI(SFPTRANSP);"),
    ("sfpu-hazard", "math.c", r"    TTI\(SFPMAX\(2, 3\)\);\n    TTI\(SFPNOP\);", "    TTI(SFPMAX(2, 3));"),
    ("fpu-sfpu", "math.c", r"    TTI\(STALLWAIT\(HOLD_SFPU[^\n]*\n", ""),
    ("fpu-sfpu", "math.c", r"HOLD_SFPU, UNTIL_FPU_IDLE", "HOLD_SFPU, UNTIL_SFPU_IDLE"),
    ("pack-rebase", "pack.c", r"(HOLD_CONFIG, [^)]*) \| UNTIL_PACKER_IDLE", r"\1"),
    ("dst-handover", "math.c", r"TTI\(STALLWAIT\(HOLD_SYNC, UNTIL_FPU_IDLE \| UNTIL_SFPU_IDLE\)\);",
     "TTI(STALLWAIT(HOLD_SYNC, UNTIL_FPU_IDLE));"),
    ("dst-handover", "pack.c", r"            TTI\(STALLWAIT\(HOLD_SYNC[^\n]*\n", ""),
    ("dst-handover", "pack.c", r"HOLD_SYNC, UNTIL_PACKER_IDLE", "HOLD_SYNC, UNTIL_FPU_IDLE"),
    ("dst-handover", "pack.c", r"            TTI\(SEMWAIT\([^\n]*\n", ""),
    ("dst-handover", "pack.c", r"SEMAPHORE_DST, WHILE_ZERO", "SEMAPHORE_DST, WHILE_MAX"),
    ("dst-handover", "math.c", r"            TTI\(SEMWAIT\([^\n]*\n", ""),
    ("dst-handover", "math.c", r"            TTI\(STALLWAIT\(HOLD_CONFIG \| HOLD_MATH[^\n]*\n", ""),
    ("fence", "start.h", r"        FENCE\(\);\n    FENCE\(\);\n\}", "        ;\n    FENCE();\n}"),
    ("noc-done", "brisc.c", r"(halo_plane\(l, p, at\);\n)    noc_wait\(\);", r"\1"),
    ("noc-done", "ncrisc.c", r"    noc_wait\(\);\n(    MB->tail_clock\[2\])", r"\1"),
    ("noc-done", "brisc.c", r"PICTURE \+ y \* row, row\);\n    noc_wait\(\);", "PICTURE + y * row, row);"),
    ("noc-done", "noc.h", r"    \}\n    FENCE\(\);\n\}", "    }\n}"),
    ("noc-done", "noc.h", r"(noc_wait\(void\) \{\n)    noc_ready\(\);\n", r"\1"),
    ("noc-done", "noc.h", r"NOC_OUTSTANDING\(NOC_OWN_ID\)\)", "NOC_OUTSTANDING(0))"),
    ("noc-ready", "noc.h", r"(u64 back\) \{\n)    noc_ready\(\);\n", r"\1"),
    ("signal", "brisc.c", r"    publish\(&MB->brisc_out\.value\);\n", "", 1),
    ("signal", "feeder.c", r"    publish\(&MB->weights_ready\.value\);\n", ""),
    ("signal", "start.h", r"    FENCE\(\);\n    u32 seen", "    u32 seen"),
    ("signal", "start.h", r"    FENCE\(\);\n\}\n\nstatic inline void step", "}\n\nstatic inline void step"),
    ("signal", "ncrisc.c", r"    publish\(&MB->ncrisc_out\.value\);\n", ""),
    ("signal", "noc.h", r"NOC_ANSWER = 1 << 4,", "NOC_INLINE = 8, NOC_ANSWER = 1 << 4,"),
    ("go-order", "brisc.c", r"    FENCE\(\); /\* \[go-order\] \*/\n    MB->go", "    MB->go"),
    ("go-order", "brisc.c", r"    FENCE\(\); /\* \[go-order\] \*/\n    tell_neighbours", "    tell_neighbours"),
    ("go-order", "taps.h", r"    FENCE\(\); /\* \[go-order\] \*/\n", ""),
    ("go-order", "unpack.c", r"            wait_taps\(number\);\n", ""),
    ("drain", "unpack.c", r"        DRAIN\(\);\n        MB->thread_done", "        MB->thread_done"),
    ("drain", "math.c", r"        DRAIN\(\);\n        MB->thread_done", "        MB->thread_done"),
    ("drain", "pack.c", r"        DRAIN\(\);\n        MB->thread_done", "        MB->thread_done"),
    ("drain", "unpack.c", r"        DRAIN\(\);\n        MB->weights_used", "        MB->weights_used"),
    ("multicast-done", "feeder.c", r"    while \(NOC_WRITE_ACKS != acks_due\)", "    while (0)"),
    ("multicast-done", "feeder.c", r" \| NOC_PATH_RESERVE", ""),
    ("start", "ncrisc.c", r"    report_start\([^\n]*\n", ""),
    ("start", "start.h", r"csrrc zero, 0x7c0", "csrrs zero, 0x7c0"),
    ("start", "math.c", r"    TTI\(ZEROACC_ALL\);\n", ""),
    ("list", "brisc.c", r"\[go-order\]", "[unheard-of]", 1),
]


def self_test(sources, doc):
    failures = 0
    for rule, name, pattern, replacement, *count in BREAKS:
        changed = dict(sources)
        changed[name], n = re.subn(pattern, replacement, sources[name], count=count[0] if count else 0)
        if not n:
            print(f"self-test: {name}: nothing to break: {pattern}")
            failures += 1
            continue
        found = Check(changed, doc).run()
        if not any(e.startswith(f"[{rule}]") for e in found):
            print(f"self-test: [{rule}] in {name} was not noticed: {pattern} -> {replacement!r}; found {found}")
            failures += 1
    print(f"self-test: {len(BREAKS) - failures} of {len(BREAKS)} broken sources refused")
    return failures


def main(argv):
    testing = "--self-test" in argv
    argv = [a for a in argv if a != "--self-test"]
    if len(argv) not in (3, 5):
        print(__doc__)
        return 2
    folder = Path(argv[1])
    sources = {name: (folder / name).read_text() for name in HEADERS + [p + ".c" for p in PROGRAMS]}
    doc = Path(argv[2]).read_text()
    check = Check(sources, doc)
    errors = check.run()
    for tag in sorted(check.unmarked):
        if f"| `{tag}` | host" not in doc:
            errors.append(f"[list] docs/blackhole.md: `{tag}` is listed and marked nowhere in the firmware")
    if len(argv) == 5:
        errors += machine_code(argv[3], argv[4])
    for e in errors:
        print(e)
    if errors:
        return 1
    print(f"{len(sources)} sources: no violation")
    return 1 if testing and self_test(sources, doc) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

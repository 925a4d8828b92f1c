"""Writes docs/api-coverage.md from protocol/cuda.api."""

INTRO = """\
# Driver API coverage

Generated from `protocol/cuda.api`. With a genuine driver and no daemon (pass-through) every function goes to that driver;
this page is about sessions: programs served by a gmux server.

"""


def page(spec):
    works = [f for f in spec.functions if f.tier == "impl"]
    bases = spec.by_base()
    served = [b for b, v in bases.items() if any(f.tier == "impl" for f in v)]
    o = [INTRO + f"{len(works)} of {len(spec.functions)} functions work ({len(served)} of {len(bases)} names; variants with a "
         "per-thread default stream are not counted apart). The others are exported and answer "
         "`CUDA_ERROR_NOT_SUPPORTED`.", "", "| function | since CUDA | per-thread stream | in a session |",
         "| --- | --- | --- | --- |"]
    for base in sorted(bases):
        for f in bases[base]:
            version = f"{f.since // 1000}.{f.since % 1000 // 10}"
            twin = ", ".join(f"`_{t}`" for t in f.twins)
            state = "works" if f.tier == "impl" else "`CUDA_ERROR_NOT_SUPPORTED`"
            o += [f"| `{f.symbol}` | {version} | {twin} | {state} |"]
    return "\n".join(o) + "\n"

/*
 * Finds out about this machine once, and runs LLVM's passes over a finished module.
 */
#include "jit/target.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Registers are allocas until sroa; after that mostly redundancy between unrolled copies is left to
 * remove. The full -O2 pipeline takes several times as long for no gain on PTX, which comes
 * optimised. */
#define FIRST_PASSES "always-inline,function(sroa,early-cse<memssa>,"
#define OTHER_PASSES                                                                               \
    "instcombine<no-verify-fixpoint>,simplifycfg,jump-threading,gvn,loop-mssa(licm),"              \
    "instcombine<no-verify-fixpoint>,dse,simplifycfg,adce)"
static const char passes[] = FIRST_PASSES OTHER_PASSES;
/* For kernels with blocks in pieces (frame.c), which are joined as soon as there are no allocas. */
static const char piece_passes[] = FIRST_PASSES "simplifycfg," OTHER_PASSES;
/* For large kernels, whose registers stay in memory. Not instcombine: for each value it looks at
 * all checks of the window, and whether they dominate it. */
static const char few_passes[] = FIRST_PASSES "instsimplify,simplifycfg)";

static LLVMTargetRef native;
static char *triple, *cpu, *features;
static struct jit_target targets[3];

bool jit_target_init(void)
{
    /* The machine scheduler of the x86 back end hoists loads over hundreds of instructions and
     * spills what it then cannot keep: unscheduled code is 10-30 % faster for unrolled kernels. */
    const char *const options[] = {
        "gmux-jit",
        "-enable-misched=0",
        /* How far the register allocator looks for where to split a live range, of 10,000 edges. In
         * kernels with many blocks that is what takes longest. */
        "-grow-region-complexity-budget=1000",
        /* Large kernels, too, whose code is not optimised else: without it each value that is not
         * left in a register has a place of its own on the stack, of which there is a MiB soon. */
        "-optimize-regalloc",
        /* From how many loads and stores of a block on the scheduler does not tell them all apart,
         * of 500. What it takes grows with their square. */
        "-dag-maps-huge-region=250",
#if defined(__x86_64__)
        /* Moves sets of lanes between kinds of registers. It takes more than half of the time for
         * kernels with many of them. */
        "-disable-x86-domain-reassignment",
        /* The beginning of a function with a large frame uses r11 to touch the pages. LLVM 19 moves
         * it behind a kernel's first tests, where r11 may hold a value, which is lost. */
        "-enable-shrink-wrap=false",
#endif
    };
    char *error = NULL;

    LLVMParseCommandLineOptions((int)GM_ARRAY_LEN(options), options, NULL);
    if (LLVMInitializeNativeTarget() || LLVMInitializeNativeAsmPrinter())
        return false;
    triple = LLVMGetDefaultTargetTriple();
    cpu = LLVMGetHostCPUName();
    features = LLVMGetHostCPUFeatures();
    if (LLVMGetTargetFromTriple(triple, &native, &error)) {
        LLVMDisposeMessage(error);
        return false;
    }
    return true;
}

static bool has_feature(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; (p = strstr(p, name)); p += n)
        if (p > list && p[-1] == '+' && (p[n] == ',' || p[n] == 0))
            return true;
    return false;
}

const struct jit_target *jit_target_get(enum soft_isa isa)
{
    if ((size_t)isa >= GM_ARRAY_LEN(targets))
        return NULL;
    struct jit_target *t = &targets[isa];
    if (t->machine)
        return t;
    const char *name = cpu, *list = features;
#if defined(__x86_64__)
    if (isa == SOFT_ISA_AVX2)
        name = "x86-64-v3", list = "";
    else if (isa == SOFT_ISA_BASE)
        name = "x86-64-v2", list = "";
    t->avx512 = isa == SOFT_ISA_NATIVE && has_feature(features, "avx512f") &&
                has_feature(features, "avx512dq") && has_feature(features, "avx512bw") &&
                has_feature(features, "avx512vl");
    bool intel = __builtin_cpu_is("intel");
    t->extracts = intel && t->avx512; /* AMD's take such places for conflicts with stores */
    /* Intel's since Sapphire Rapids. Older ones gather slowly since they keep others' data out of
     * it (Downfall), and AMD's do. */
    t->gathers = intel && t->avx512 && has_feature(features, "avx512fp16");
    t->avx2 = isa != SOFT_ISA_BASE && has_feature(features, "avx2") && has_feature(features, "fma");
    t->fma = isa != SOFT_ISA_BASE && has_feature(features, "fma");
    t->half = isa != SOFT_ISA_BASE && has_feature(features, "f16c");
#else
    t->fma = t->half = true;
    if (isa != SOFT_ISA_NATIVE)
        return NULL;
#endif
    char wide[4096];
    if (t->avx512) {
        /* Vectors of 512 bits are why we are here. Without instructions of 16-bit floats: LLVM 19
         * swaps the operands of a masked vcmpph, so that one of them can stay in memory, and leaves
         * its predicate as it is (less becomes greater). */
        snprintf(wide, sizeof(wide), "%s,-prefer-256-bit,-avx512fp16", list);
        list = wide;
    }
    t->isa = isa;
    t->machine = LLVMCreateTargetMachine(native, triple, name, list, LLVMCodeGenLevelDefault,
                                         LLVMRelocPIC, LLVMCodeModelSmall);
    t->quick = LLVMCreateTargetMachine(native, triple, name, list, LLVMCodeGenLevelNone,
                                       LLVMRelocPIC, LLVMCodeModelSmall);
    return t->machine && t->quick ? t : NULL;
}

void jit_target_prepare(const struct jit_target *t, LLVMModuleRef m)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(t->machine);
    LLVMSetTarget(m, triple);
    LLVMSetModuleDataLayout(m, layout);
    LLVMDisposeTargetData(layout);
}

static void one_line(char *why, size_t why_size, const char *what, const char *text)
{
    snprintf(why, why_size, "%s: %s", what, text ? text : "?");
    why[strcspn(why, "\n")] = 0;
}

static LLVMErrorRef run_passes(const struct jit_target *t, LLVMModuleRef m, const char *names)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(m, names, t->machine, options);
    LLVMDisposePassBuilderOptions(options);
    return error;
}

/* Lets the functions that are to be inlined late be inlined now. False: there are none. */
static bool release_late(LLVMModuleRef m)
{
    const unsigned never = LLVMGetEnumAttributeKindForName("noinline", 8);
    const unsigned always = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
    bool found = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f)) {
        if (!LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, JIT_LATE,
                                           sizeof(JIT_LATE) - 1))
            continue;
        LLVMRemoveEnumAttributeAtIndex(f, LLVMAttributeFunctionIndex, never);
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(LLVMGetModuleContext(m), always, 0));
        found = true;
    }
    return found;
}

int jit_target_optimise(const struct jit_target *t, LLVMModuleRef m, bool large, bool in_pieces,
                        char *why, size_t why_size)
{
    char *text = NULL;

    if (LLVMVerifyModule(m, LLVMReturnStatusAction, &text)) {
        one_line(why, why_size, "bad code", text);
        LLVMDisposeMessage(text);
        return -1;
    }
    LLVMDisposeMessage(text);
    LLVMErrorRef error = run_passes(t, m, large ? few_passes : in_pieces ? piece_passes : passes);
    if (!error && release_late(m))
        error = run_passes(t, m, "always-inline");
    if (error) {
        text = LLVMGetErrorMessage(error);
        one_line(why, why_size, "optimiser", text);
        LLVMDisposeErrorMessage(text);
        return -1;
    }
    return 0;
}

int jit_target_compile(const struct jit_target *t, LLVMModuleRef m, bool large,
                       LLVMMemoryBufferRef *object, char *why, size_t why_size)
{
    char *text = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(large ? t->quick : t->machine, m, LLVMObjectFile, &text,
                                            object)) {
        one_line(why, why_size, "code generator", text);
        LLVMDisposeMessage(text);
        return -1;
    }
    return 0;
}

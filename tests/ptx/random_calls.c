/*
 * Calls in random kernels: of functions by their address and by their name, of some that call
 * themselves or each other, with structures and pointers, and of one in which the lanes of a warp
 * meet.
 */
#include "random_maker.h"

/* Functions from one number to another; `functions` has their addresses. */
static const char by_address[] =
    ".func (.param .b32 r) plus(.param .b32 x)\n{\n\t.reg .b32 %a;\n\tld.param.b32 %a, [x];\n"
    "\tmad.lo.s32 %a, %a, 3, 1;\n\tst.param.b32 [r], %a;\n\tret;\n}\n"
    ".func (.param .b32 r) side(.param .b32 x)\n{\n\t.reg .b32 %a;\n\t.reg .pred %p;\n"
    "\tld.param.b32 %a, [x];\n\tsetp.lt.s32 %p, %a, 100;\n\t@%p bra low;\n\tshr.u32 %a, %a, 3;\n"
    "\tbra end;\nlow:\n\tnot.b32 %a, %a;\nend:\n\tst.param.b32 [r], %a;\n\tret;\n}\n"
    ".func (.param .b32 r) climb(.param .b32 x)\n{\n\t.local .align 8 .b8 own[8];\n"
    "\t.reg .b32 %a, %b;\n\t.reg .pred %p;\n\t.param .b32 down;\n\t.param .b32 up;\n"
    "\tld.param.b32 %a, [x];\n\tand.b32 %b, %a, 7;\n\tst.local.b32 [own+4], %a;\n"
    "\tsetp.eq.s32 %p, %b, 0;\n\t@%p bra end;\n\tsub.s32 %b, %a, 1;\n\tst.param.b32 [down], %b;\n"
    "\tcall (up), climb, (down);\n\tld.param.b32 %b, [up];\n\tld.local.b32 %a, [own+4];\n"
    "\tmad.lo.s32 %a, %b, 5, %a;\nend:\n\tst.param.b32 [r], %a;\n\tret;\n}\n"
    ".func (.param .b32 r) steps(.param .b32 x)\n{\n\t.reg .b32 %a, %n;\n\t.reg .pred %p;\n"
    "\tld.param.b32 %a, [x];\n\tand.b32 %n, %a, 5;\nmore:\n\tsetp.eq.s32 %p, %a, 9;\n\t@%p bra "
    "done;\n\tmad.lo.s32 %a, %a, 7, %n;\n\tsub.s32 %n, %n, 1;\n\tsetp.ge.s32 %p, %n, 0;\n"
    "\t@%p bra more;\ndone:\n\tst.param.b32 [r], %a;\n\t@%p ret;\n\txor.b32 %a, %a, 1;\n"
    "\tst.param.b32 [r], %a;\n\tret;\n}\n"
    ".func (.param .b32 r) odd(.param .b32 x);\n"
    ".func (.param .b32 r) even(.param .b32 x)\n{\n\t.reg .b32 %a, %b;\n\t.reg .pred %p;\n"
    "\t.param .b32 to;\n\t.param .b32 of;\n\tld.param.b32 %a, [x];\n\tshr.u32 %b, %a, 5;\n"
    "\tst.param.b32 [to], %b;\n\tsetp.ne.s32 %p, %b, 0;\n\tmov.b32 %b, 1;\n\t@!%p bra end;\n"
    "\tcall (of), odd, (to);\n\tld.param.b32 %b, [of];\nend:\n\tadd.s32 %b, %b, %a;\n"
    "\tst.param.b32 [r], %b;\n\tret;\n}\n"
    ".func (.param .b32 r) odd(.param .b32 x)\n{\n\t.reg .b32 %a, %b;\n\t.reg .pred %p;\n"
    "\t.param .b32 to;\n\t.param .b32 of;\n\tld.param.b32 %a, [x];\n\tsetp.lt.u32 %p, %a, 99;\n"
    "\t@%p bra end;\n\tshr.u32 %b, %a, 7;\n\tst.param.b32 [to], %b;\n\tcall (of), even, (to);\n"
    "\tld.param.b32 %b, [of];\n\tadd.s32 %a, %b, %a;\nend:\n\tst.param.b32 [r], %a;\n\tret;\n}\n"
    ".global .align 8 .u64 functions[8] = {plus, side, climb, steps, climb, even, odd, side};\n";

/* By name: a structure of 16 bytes with its halves mixed; the sum of n words, by calling itself. */
static const char by_name[] =
    ".func (.param .align 8 .b8 r[16]) mix(.param .align 8 .b8 s[16])\n{\n\t.reg .b64 %a, %b;\n"
    "\t.reg .b32 %c;\n\tld.param.b64 %a, [s];\n\tld.param.v2.b32 {%c, _}, [s+8];\n"
    "\tld.param.b64 %b, [s+8];\n\tadd.s64 %b, %a, %b;\n\tst.param.b64 [r+8], %b;\n"
    "\tst.param.b64 [r], %a;\n\tst.param.b32 [r+4], %c;\n\tret;\n}\n"
    ".func (.param .b32 r) sum(.param .b64 at, .param .b32 n)\n{\n\t.reg .b64 %at;\n"
    "\t.reg .b32 %n, %v, %s;\n\t.reg .pred %p;\n\t.param .b64 to;\n\t.param .b32 left;\n"
    "\t.param .b32 of;\n\tld.param.b64 %at, [at];\n\tld.param.b32 %n, [n];\n\tmov.b32 %s, 0;\n"
    "\tsetp.le.s32 %p, %n, 0;\n\t@%p bra end;\n\tld.b32 %v, [%at];\n\tst.b8 [%at+1], %n;\n"
    "\tadd.s64 %at, %at, 4;\n\tst.param.b64 [to], %at;\n\tsub.s32 %s, %n, 1;\n"
    "\tst.param.b32 [left], %s;\n\tcall (of), sum, (to, left);\n\tld.param.b32 %s, [of];\n"
    "\tadd.s32 %s, %s, %v;\nend:\n\tst.param.b32 [r], %s;\n\tret;\n}\n";

/* For all lanes of a warp at once. */
static const char in_step[] =
    ".func (.param .b32 r) agree(.param .b32 x, .param .b32 y)\n{\n\t.reg .b32 %a, %b;\n"
    "\t.reg .pred %p;\n\tld.param.b32 %a, [x];\n\tld.param.b32 %b, [y];\n"
    "\tsetp.lt.s32 %p, %a, %b;\n\tvote.sync.ballot.b32 %a, %p, -1;\n"
    "\tshfl.sync.bfly.b32 %b, %b, 3, 31, -1;\n\txor.b32 %a, %a, %b;\n\tst.param.b32 [r], %a;\n"
    "\tret;\n}\n"
    ".func (.param .b32 r) most(.param .b32 x, .param .b32 y)\n{\n\t.reg .b32 %a, %b;\n"
    "\tld.param.b32 %a, [x];\n\tld.param.b32 %b, [y];\n\tredux.sync.max.s32 %a, %a, -1;\n"
    "\tadd.s32 %a, %a, %b;\n\tst.param.b32 [r], %a;\n\tret;\n}\n"
    ".global .align 8 .u64 meetings[2] = {agree, most};\n";

void random_functions(struct maker *m)
{
    fputs(by_address, m->out);
    fputs(by_name, m->out);
    fputs(in_step, m->out);
}

/* What `got` holds behind a call that is not made is this device's own. */
static void guard(struct maker *m)
{
    if (!m->portable && pick(m, 2))
        fprintf(m->out, "\t@%s%%p%u ", pick(m, 2) ? "!" : "", pick(m, PREDS));
    else
        fprintf(m->out, "\t");
}

static void call_by_address(struct maker *m)
{
    unsigned label = m->labels++, d = pick(m, INTS);
    fprintf(
        m->out,
        "\t{\n\t.param .b32 given;\n\t.param .b32 got;\n\tand.b32 %%t0, %%r%u, 7;\n\tmul.wide.u32 "
        "%%a0, %%t0, 8;\n"
        "\tmov.u64 %%a1, functions;\n\tadd.s64 %%a0, %%a1, %%a0;\n\tld.global.u64 %%a1, [%%a0];\n"
        "\tst.param.b32 [given], %%r%u;\n\tst.param.b32 [got], %%r%u;\n",
        pick(m, INTS), pick(m, INTS), d);
    fprintf(m->out, "L%u_proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n", label);
    guard(m);
    fprintf(m->out, "call (got), %%a1, (given), L%u_proto;\n\tld.param.b32 %%r%u, [got];\n\t}\n",
            label, d);
}

static void call_by_name(struct maker *m)
{
    static const char *const names[] = { "plus", "climb", "steps", "even", "odd" };
    unsigned d = pick(m, INTS), l = pick(m, LONGS);
    switch (pick(m, 3)) {
    case 0:
        fprintf(m->out,
                "\t{\n\t.param .align 8 .b8 given[16];\n\t.param .align 8 .b8 got[16];\n"
                "\tst.param.b64 [given], %%rd%u;\n\tst.param.v2.b32 [given+8], {%%r%u, %%r%u};\n"
                "\tcall (got), mix, (given);\n\tld.param.b32 %%r%u, [got+8];\n"
                "\tld.param.b64 %%rd%u, [got];\n\t}\n",
                l, pick(m, INTS), pick(m, INTS), d, pick(m, LONGS));
        break;
    case 1:
        fprintf(m->out,
                "\t{\n\t.param .b64 at;\n\t.param .b32 n;\n\t.param .b32 got;\n"
                "\tcvta.local.u64 %%a0, %%lmb;\n\tand.b32 %%t0, %%r%u, 7;\n"
                "\tst.param.b64 [at], %%a0;\n\tst.param.b32 [n], %%t0;\n"
                "\tst.param.b32 [got], %%r%u;\n",
                pick(m, INTS), d);
        guard(m);
        fprintf(m->out, "call (got), sum, (at, n);\n\tld.param.b32 %%r%u, [got];\n\t}\n", d);
        break;
    default:
        fprintf(m->out,
                "\t{\n\t.param .b32 given;\n\t.param .b32 got;\n\tst.param.b32 [given], %%r%u;\n"
                "\tst.param.b32 [got], %%r%u;\n",
                pick(m, INTS), d);
        guard(m);
        fprintf(m->out, "call (got), %s, (given);\n\tld.param.b32 %%r%u, [got];\n\t}\n",
                PICK(m, names), d);
        break;
    }
}

void random_call(struct maker *m)
{
    pick(m, 2) ? call_by_address(m) : call_by_name(m);
}

void random_meeting_call(struct maker *m)
{
    unsigned label = m->labels++, d = pick(m, INTS);
    fprintf(m->out,
            "\t{\n\t.param .b32 one;\n\t.param .b32 two;\n\t.param .b32 got;\n\tmov.u32 %%t0, "
            "%%ctaid.x;\n\tand.b32 %%t0, %%t0, 1;\n\tmul.wide.u32 %%a0, %%t0, 8;\n\tmov.u64 %%a1, "
            "meetings;\n\tadd.s64 %%a0, %%a1, %%a0;\n\tld.global.u64 %%a1, [%%a0];\n"
            "\tst.param.b32 [one], %%r%u;\n\tst.param.b32 [two], %%r%u;\n",
            pick(m, INTS), pick(m, INTS));
    fprintf(m->out,
            "L%u_proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n"
            "\tcall (got), %%a1, (one, two), L%u_proto;\n\tld.param.b32 %%r%u, [got];\n\t}\n",
            label, label, d);
}

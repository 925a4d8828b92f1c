/*
 * malloc and free of kernels, written in PTX: a unit of its own (link.c) in modules that call them
 * without defining them. All state of a heap lies in the heap itself, in the client's own memory,
 * and is read and written like any other memory of a kernel: a program that damages it harms only
 * itself. It outlives modules and executors.
 *
 * The client library gives a context a heap when it loads the first module that has the variable
 * __gmux$heap, and writes the heap's address and size there (client/module/heap.c). A heap is all
 * zeros at first:
 *
 *     0       the state: bits 0 to 24 units that blocks have taken so far, 25 to 49 blocks in
 *             use and threads that look for one, 50 to 63 how often that has changed
 *     64      for each class a list of free blocks: the number of the first one (0: none) and, in
 *             the upper half, how often the list has changed, so that a slow thread notices that
 *             the list is not the one that it has read
 *     1088    blocks, in units of 16 bytes, or of a larger power of two so that there are at most
 *             2^25 units; the number of a block is that of its first unit, from 1
 *
 * A block begins with its class, a word that says that it is in use, and the number of the next
 * free block. There are classes for up to 7 units, then four for each power of two. Blocks keep
 * their class: a request that finds none of its class takes a larger one, and small ones are never
 * joined. But when no block is in use any more, and more than half of the heap has been taken,
 * everything begins anew. No thread waits for another.
 */
#include "device/soft/ptx/parse.h"

#define TAKEN "0x6b636c62"
#define USED  "0x1ffffff"
#define ENTER "0x4000002000000" /* adds one block or thread, and one change */
#define LEAVE "0x3fffffe000000" /* takes one away, and adds one change */
#define AGAIN "0x4000000000000"

#define GEOMETRY                                                                                   \
    " ld.global.u64 %d2, [__gmux$heap]; ld.global.v2.u64 {%d2, %d3}, [%d2];\n"                     \
    " bfind.u64 %r0, %d3; sub.u32 %r0, %r0, 24; "                                                  \
    "max.s32 %r0, %r0, 4;\n"

const char ptx_heap[] =
    "\n.pragma \"gmux unit own device heap\";\n"
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 8 .b8 __gmux$heap[8];\n"
    /* %r0: the size of a unit as a power of two; %r1: how many units, with the head; %r2: the
     * class. */
    ".visible .func (.param .b64 result) malloc(.param .b64 size)\n{\n"
    " .reg .b32 %r<12>; .reg .b64 %d<17>; .reg .pred %p<9>;\n"
    " ld.param.u64 %d1, [size]; mov.u64 %d0, 0;\n" GEOMETRY
    " setp.ge.u64 %p1, %d1, %d3; @%p1 bra out;\n"
    " sub.u64 %d4, %d3, 1088; shr.u64 %d4, %d4, %r0; cvt.u32.u64 %r9, %d4;\n"
    " shl.b64 %d4, 1, %r0; add.u64 %d4, %d4, %d1; add.u64 %d4, %d4, 15; shr.u64 %d4, %d4, %r0; "
    "cvt.u32.u64 %r1, "
    "%d4;\n"
    " mov.u32 %r2, %r1; setp.lt.u32 %p2, %r1, 8; @%p2 bra sized;\n"
    " bfind.u32 %r3, %r1; sub.u32 %r3, %r3, 2; shl.b32 %r4, 1, %r3; add.u32 %r5, %r1, %r4; sub.u32 "
    "%r5, %r5, 1;\n"
    " shr.u32 %r5, %r5, %r3; shl.b32 %r1, %r5, %r3; mad.lo.u32 %r2, %r3, 4, %r5;\n"
    "sized:\n"
    " atom.acquire.gpu.global.add.u64 %d4, [%d2], " ENTER ";\n"
    " add.u64 %d5, %d2, 1088; mov.u32 %r6, %r2;\n"
    "look:\n"
    " mad.wide.u32 %d6, %r6, 8, %d2;\n"
    "pop:\n"
    " ld.acquire.gpu.global.u64 %d7, [%d6+64]; cvt.u32.u64 %r7, %d7; setp.eq.u32 %p3, %r7, 0; @%p3 "
    "bra none;\n"
    " sub.u32 %r7, %r7, 1; cvt.u64.u32 %d8, %r7; shl.b64 %d8, %d8, %r0; add.u64 %d8, %d8, %d5;\n"
    " ld.relaxed.gpu.global.u32 %r8, [%d8+8]; cvt.u64.u32 %d10, %r8;\n"
    " shr.u64 %d9, %d7, 32; add.u64 %d9, %d9, 1; shl.b64 %d9, %d9, 32; or.b64 %d9, %d9, %d10;\n"
    " atom.acq_rel.gpu.global.cas.b64 %d11, [%d6+64], %d7, %d9; setp.ne.u64 %p4, %d11, %d7; @%p4 "
    "bra pop;\n"
    " bra found;\n"
    "none:\n"
    " setp.ne.u32 %p5, %r6, %r2; @%p5 bra next;\n"
    "grow:\n"
    " ld.relaxed.gpu.global.u64 %d12, [%d2]; cvt.u32.u64 %r10, %d12; and.b32 %r10, %r10, " USED
    ";\n"
    " add.u32 %r11, %r10, %r1; setp.gt.u32 %p6, %r11, %r9; @%p6 bra next;\n"
    " cvt.u64.u32 %d13, %r1; add.u64 %d13, %d12, %d13;\n"
    " atom.relaxed.gpu.global.cas.b64 %d14, [%d2], %d12, %d13; setp.ne.u64 %p7, %d14, %d12; @%p7 "
    "bra grow;\n"
    " cvt.u64.u32 %d8, %r10; shl.b64 %d8, %d8, %r0; add.u64 %d8, %d8, %d5; st.global.u32 [%d8], "
    "%r2; bra found;\n"
    "next:\n"
    " add.u32 %r6, %r6, 1; setp.lt.u32 %p8, %r6, 128; @%p8 bra look;\n"
    " red.release.gpu.global.add.u64 [%d2], " LEAVE "; bra out;\n"
    "found:\n"
    " st.global.u32 [%d8+4], " TAKEN "; add.u64 %d0, %d8, 16;\n"
    "out:\n"
    " st.param.b64 [result], %d0; ret;\n}\n"
    /* A pointer that malloc did not return, or that was freed already, ends the kernel. */
    ".visible .func free(.param .b64 p)\n{\n"
    " .reg .b32 %r<9>; .reg .b64 %d<16>; .reg .pred %p<9>;\n"
    " ld.param.u64 %d1, [p]; setp.eq.u64 %p1, %d1, 0; @%p1 bra out;\n" GEOMETRY
    " sub.u64 %d4, %d1, %d2; sub.u64 %d4, %d4, 1104; setp.ge.u64 %p2, %d4, %d3;\n"
    " shr.u64 %d8, %d4, %r0; shl.b64 %d5, %d8, %r0; setp.ne.or.u64 %p2, %d5, %d4, %p2; @%p2 bra "
    "wrong;\n"
    " sub.u64 %d6, %d1, 16; atom.acq_rel.gpu.global.exch.b32 %r1, [%d6+4], 0;\n"
    " setp.ne.u32 %p3, %r1, " TAKEN "; @%p3 bra wrong;\n"
    " ld.global.u32 %r2, [%d6]; and.b32 %r2, %r2, 127; mad.wide.u32 %d7, %r2, 8, %d2; add.u64 %d8, "
    "%d8, 1;\n"
    "push:\n"
    " ld.relaxed.gpu.global.u64 %d9, [%d7+64]; cvt.u32.u64 %r4, %d9; st.relaxed.gpu.global.u32 "
    "[%d6+8], %r4;\n"
    " shr.u64 %d10, %d9, 32; add.u64 %d10, %d10, 1; shl.b64 %d10, %d10, 32; or.b64 %d10, %d10, "
    "%d8;\n"
    " atom.acq_rel.gpu.global.cas.b64 %d11, [%d7+64], %d9, %d10; setp.ne.u64 %p4, %d11, %d9; @%p4 "
    "bra push;\n"
    " atom.acq_rel.gpu.global.add.u64 %d12, [%d2], " LEAVE ";\n"
    " shr.u64 %d13, %d12, 25; cvt.u32.u64 %r5, %d13; and.b32 %r5, %r5, " USED
    "; setp.ne.u32 %p5, %r5, 1; @%p5 bra out;\n"
    " and.b64 %d13, %d12, " USED "; shl.b64 %d14, %d13, 1; shl.b64 %d14, %d14, %r0;\n"
    " setp.lt.u64 %p6, %d14, %d3; @%p6 bra out;\n"
    /* No block is in use and no thread looks for one. A thread that comes now changes the word, and
     * then nothing is reset; blocks that the lists have lost come back the next time. */
    " mov.u32 %r6, 0;\n"
    "clear:\n"
    " mad.wide.u32 %d7, %r6, 8, %d2; atom.relaxed.gpu.global.and.b64 %d15, [%d7+64], "
    "0xffffffff00000000;\n"
    " add.u32 %r6, %r6, 1; setp.lt.u32 %p7, %r6, 128; @%p7 bra clear;\n"
    " add.u64 %d12, %d12, " LEAVE "; sub.u64 %d14, %d12, %d13; add.u64 %d14, %d14, " AGAIN ";\n"
    " atom.acq_rel.gpu.global.cas.b64 %d15, [%d2], %d12, %d14;\n"
    "out:\n"
    " ret;\n"
    "wrong:\n"
    " trap; ret;\n}\n";
const size_t ptx_heap_size = sizeof(ptx_heap) - 1;

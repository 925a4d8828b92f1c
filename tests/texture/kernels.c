/*
 * The kernels of the samples: PTX made here, one kernel for each form of the instruction.
 */
#include "samples.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t used, room;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list args;
    if (room - used < 4096)
        text = realloc(text, room = room * 2 + 65536);
    va_start(args, format);
    used += (size_t)vsnprintf(text + used, room - used, format, args);
    va_end(args);
}

static void begin(const char *name)
{
    put(".visible .entry %s(.param .u64 tex, .param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
        "    .reg .pred %%p<3>;\n    .reg .b32 %%r<24>;\n    .reg .b32 %%o<6>;\n    .reg .b64 "
        "%%rd<8>;\n"
        "    .reg .b16 %%h<4>;\n"
        "    ld.param.u64 %%rd1, [tex];\n    ld.param.u64 %%rd2, [in];\n    ld.param.u64 %%rd3, "
        "[out];\n"
        "    ld.param.u32 %%r20, [n];\n    mov.u32 %%r21, %%ctaid.x;\n    mov.u32 %%r22, "
        "%%ntid.x;\n"
        "    mov.u32 %%r23, %%tid.x;\n    mad.lo.s32 %%r21, %%r21, %%r22, %%r23;\n"
        "    setp.ge.u32 %%p1, %%r21, %%r20;\n    @%%p1 bra done;\n"
        "    cvta.to.global.u64 %%rd2, %%rd2;\n    cvta.to.global.u64 %%rd3, %%rd3;\n"
        "    mad.wide.u32 %%rd2, %%r21, %d, %%rd2;\n    mad.wide.u32 %%rd3, %%r21, 16, %%rd3;\n",
        name, 4 * SAMPLE_WORDS);
    for (int i = 0; i < SAMPLE_WORDS; i++)
        put("    ld.global.b32 %%r%d, [%%rd2+%d];\n", i, 4 * i);
    for (int i = 0; i < 4; i++)
        put("    mov.b32 %%o%d, 0;\n", i);
}

static void end(void)
{
    put("    st.global.v4.b32 [%%rd3], {%%o0, %%o1, %%o2, %%o3};\ndone:\n    ret;\n}\n");
}

struct geometry {
    const char *word, *coordinates, *dx, *dy, *offset;
};

static const struct geometry geometries[] = {
    { "1d", "{%r0}", "{%r4}", "{%r7}", "{1}" },
    { "2d", "{%r0, %r1}", "{%r4, %r5}", "{%r7, %r8}", "{1, -2}" },
    { "3d", "{%r0, %r1, %r2, %r2}", "{%r4, %r5, %r6, %r6}", "{%r7, %r8, %r9, %r9}",
      "{1, -2, 3, 0}" },
    { "a1d", "{%r3, %r0}", "{%r4}", "{%r7}", "{1}" },
    { "a2d", "{%r3, %r0, %r1, %r1}", "{%r4, %r5}", "{%r7, %r8}", "{1, -2}" },
    { "cube", "{%r0, %r1, %r2, %r2}", "{%r4, %r5, %r6, %r6}", "{%r7, %r8, %r9, %r9}", NULL },
    { "acube", "{%r3, %r0, %r1, %r2}", "{%r4, %r5, %r6, %r6}", "{%r7, %r8, %r9, %r9}", NULL },
};
#define GEOMETRIES (sizeof(geometries) / sizeof(geometries[0]))

static void samples_of(const struct geometry *g)
{
    static const char *const types[] = { "f32", "u32", "s32" };
    char name[64];
    bool cube = strstr(g->word, "cube") != NULL;
    for (int t = 0; t < 3; t++)
        for (int integer = 0; integer < (cube ? 1 : 2); integer++) {
            const char *c = integer ? "s32" : "f32";
            snprintf(name, sizeof(name), "tex_%s_%s_%s", g->word, types[t], c);
            begin(name);
            put("    tex.%s.v4.%s.%s {%%o0, %%o1, %%o2, %%o3}, [%%rd1, %s];\n", g->word, types[t],
                c, g->coordinates);
            end();
            if (t)
                continue;
            snprintf(name, sizeof(name), "level_%s_%s", g->word, c);
            begin(name);
            put("    tex.level.%s.v4.f32.%s {%%o0, %%o1, %%o2, %%o3}, [%%rd1, %s], %%r4;\n",
                g->word, c, g->coordinates);
            end();
        }
    snprintf(name, sizeof(name), "grad_%s", g->word);
    begin(name);
    put("    tex.grad.%s.v4.f32.f32 {%%o0, %%o1, %%o2, %%o3}, [%%rd1, %s], %s, %s;\n", g->word,
        g->coordinates, g->dx, g->dy);
    end();
    snprintf(name, sizeof(name), "half_%s", g->word);
    begin(name);
    put("    tex.%s.v2.f16x2.f32 {%%o0, %%o1}, [%%rd1, %s];\n", g->word, g->coordinates);
    end();
    if (g->offset) {
        snprintf(name, sizeof(name), "offset_%s", g->word);
        begin(name);
        put("    tex.%s.v4.f32.f32 {%%o0, %%o1, %%o2, %%o3}, [%%rd1, %s], %s;\n", g->word,
            g->coordinates, g->offset);
        end();
    }
}

static void gathers(void)
{
    static const char *const of[] = { "2d", "a2d", "cube", "acube" };
    char name[64];
    for (size_t k = 0; k < GEOMETRIES; k++)
        for (int o = 0; o < 4; o++)
            for (int c = 0; c < 4 && strcmp(of[o], geometries[k].word) == 0; c++) {
                snprintf(name, sizeof(name), "gather_%c_%s", "rgba"[c], of[o]);
                begin(name);
                put("    tld4.%c.%s.v4.f32.f32 {%%o0, %%o1, %%o2, %%o3}, [%%rd1, %s];\n", "rgba"[c],
                    of[o], geometries[k].coordinates);
                end();
            }
}

static void surfaces(void)
{
    static const char *const beyond[] = { "clamp", "zero", "trap" };
    static const char *const of[] = { "{%r0}", "{%r0, %r1}", "{%r0, %r1, %r2, %r2}", "{%r3, %r0}",
                                      "{%r3, %r0, %r1, %r1}" };
    char name[64];
    for (int g = 0; g < 5; g++)
        for (int b = 0; b < 3; b++) {
            const char *word = geometries[g].word;
            snprintf(name, sizeof(name), "suld_%s_%s", word, beyond[b]);
            begin(name);
            put("    suld.b.%s.b32.%s %%o0, [%%rd1, %s];\n", word, beyond[b], of[g]);
            if (b < 2) {
                put("    suld.b.%s.b8.%s %%h1, [%%rd1, %s];\n    cvt.u32.u16 %%o1, %%h1;\n", word,
                    beyond[b], of[g]);
                put("    suld.b.%s.v2.b32.%s {%%o2, %%o3}, [%%rd1, %s];\n", word, beyond[b], of[g]);
            }
            end();
            snprintf(name, sizeof(name), "sust_%s_%s", word, beyond[b]);
            begin(name);
            put("    sust.b.%s.b32.%s [%%rd1, %s], %%r4;\n", word, beyond[b], of[g]);
            end();
            snprintf(name, sizeof(name), "sustp_%s_%s", word, beyond[b]);
            begin(name);
            put("    sust.p.%s.v4.b32.%s [%%rd1, %s], {%%r4, %%r5, %%r6, %%r7};\n", word, beyond[b],
                of[g]);
            end();
            if (g > 2)
                continue;
            snprintf(name, sizeof(name), "sured_%s_%s", word, beyond[b]);
            begin(name);
            put("    sured.b.add.%s.u32.%s [%%rd1, %s], %%r4;\n", word, beyond[b], of[g]);
            end();
        }
}

static void questions(void)
{
    static const char *const of_texture[] = { "width",         "height",
                                              "depth",         "channel_data_type",
                                              "channel_order", "normalized_coords",
                                              "array_size",    "num_mipmap_levels" };
    for (int part = 0; part < 2; part++) {
        begin(part ? "txq_b" : "txq_a");
        for (int k = 0; k < 4; k++)
            put("    txq.%s.b32 %%o%d, [%%rd1];\n", of_texture[4 * part + k], k);
        end();
    }
    begin("suq_a");
    put("    suq.width.b32 %%o0, [%%rd1];\n    suq.height.b32 %%o1, [%%rd1];\n    suq.depth.b32 "
        "%%o2, [%%rd1];\n"
        "    suq.channel_data_type.b32 %%o3, [%%rd1];\n");
    end();
}

const char *sample_kernels(void)
{
    used = 0;
    put(".version 7.0\n.target sm_75\n.address_size 64\n");
    for (size_t k = 0; k < GEOMETRIES; k++)
        samples_of(&geometries[k]);
    gathers();
    surfaces();
    return text;
}

/* Apart: what a driver's compiler refuses should not take the rest along. */
const char *sample_questions(void)
{
    used = 0;
    put(".version 7.0\n.target sm_75\n.address_size 64\n");
    questions();
    return text;
}

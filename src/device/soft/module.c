/*
 * Modules: PTX text is parsed, every entry gets its interpreter code, and the client is told names,
 * parameter layouts and global variables. An entry that needs something that this device does not
 * have cannot be launched; the client is told why, and the other entries work.
 *
 * Nothing is compiled before it is launched. The parsed form is freed once the module has its place
 * in memory, so what remains of an idle client's module is the text and the interpreter's code.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/attributes.h"
#include "device/guard.h"
#include "device/modinfo.h"
#include "device/soft/check/check.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/clones.h"
#include "device/soft/ir/ir.h"
#include "device/soft/kernel.h"
#include "device/soft/ptx/ptx.h"

#define QUARTER_UNITS     64u /* of registers, of every GPU: each quarter of a multiprocessor has */
#define UNIT_OF_THREAD    8u  /* 16384 for its warps, which are given units of 256 */
#define GLOBALS_ALIGN     256u
#define LEAST_INSTR_BYTES 128u /* the least memory that a module takes for each instruction */
#define LACKS_MAX         256u /* size of the text that says why a kernel cannot be launched */
/* between variables of a checked client, so that running over the end of one is caught */
#define CHECK_GAP 64u

static struct gm_log_topic topic = GM_LOG_TOPIC("soft");

void soft_module_unload(struct dev_module *m)
{
    if (!m)
        return;
    struct dev_client *c = m->client;
    pthread_mutex_lock(&c->modules_lock);
    gm_list_remove(&m->link);
    pthread_mutex_unlock(&c->modules_lock);
    if (c->check && m->globals_address)
        (void)soft_check_note(c->check, WIRE_CHECK_NOTE_GONE, m->globals_address, m->globals_size);
    soft_module_unref(m);
}

/* --- loading ---------------------------------------------------------------------------------- */

static uint32_t volume(const uint32_t n[3])
{
    uint64_t v = (uint64_t)n[0] * GM_MAX(n[1], 1u);
    v = v > DEV_BLOCK_THREADS ? v : v * GM_MAX(n[2], 1u);
    return v == 0 || v > DEV_BLOCK_THREADS ? DEV_BLOCK_THREADS : (uint32_t)v;
}

/* Size of the module's constants when they are laid out one behind the other. */
static uint64_t const_bytes(const struct ir_module *ir)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < ir->symbol_count; i++) {
        const struct ir_symbol *s = &ir->symbols[i];
        uint64_t align = GM_MAX(s->align, 1u);
        if (s->space == IR_SPACE_CONST && s->fn == IR_NONE)
            end = (end + align - 1) / align * align + s->size;
    }
    return end;
}

/* The most registers per thread with which so many threads find room on a multiprocessor. */
static uint32_t registers_for(uint32_t threads)
{
    uint32_t warps = (threads + SOFT_WARP - 1) / SOFT_WARP, quarter = (warps + 3) / 4;
    return QUARTER_UNITS / quarter * UNIT_OF_THREAD;
}

/* Registers per thread, which the client computes occupancy from; the device does not use them.
 * They are bounded so that as many blocks as the kernel wants on a multiprocessor fit, of the size
 * that it declares, or else one of any size: a GPU's assembler sees to that, too. */
static uint32_t registers_of(const struct soft_kernel *k, const struct ir_module *ir,
                             const struct ir_fn *fn)
{
    uint32_t threads = fn->reqntid[0] ? volume(k->reqntid) : k->max_threads,
             wanted = ir_register_pressure(fn);
    bool room = fn->minnctapersm && fn->minnctapersm <= DEV_BLOCK_THREADS / threads;
    wanted = GM_MIN(wanted, registers_for(room ? threads * fn->minnctapersm : threads));
    return ir->registers_most && ir->registers_most < wanted ? ir->registers_most : wanted;
}

/* Fills a kernel's facts and tells the client about them. */
static bool launches(const struct ir_fn *fn)
{
    for (uint32_t n = 0; n < fn->instr_count; n++)
        if (fn->instrs[n].op == IR_OP_HELPER && fn->instrs[n].target == IR_HELPER_CHILD_LAUNCH)
            return true;
    return false;
}

static void kernel_describe(struct soft_kernel *k, const struct ir_module *ir,
                            const struct ir_fn *fn, struct dev_modinfo *info)
{
    struct dev_param params[IR_MAX_PARAMS];

    k->param_bytes = fn->lacks ? fn->param_bytes : fn->param_declared;
    k->thread_dims = ir_thread_dims(fn);
    k->may_wait = ir_may_wait(fn);
    k->uses_workspace = fn->uses_workspace;
    k->workspace_at = fn->workspace_at;
    k->launches = launches(fn);
    k->address = fn->address;
    k->max_threads = fn->maxntid[0] && !fn->reqntid[0] ? volume(fn->maxntid) : DEV_BLOCK_THREADS;
    k->shared_static = fn->shared_static;
    k->shared_dynamic = fn->uses_dynamic_shared ? fn->shared_dynamic : fn->shared_static;
    k->local_bytes = fn->local_bytes;
    k->uses_stack = fn->uses_stack;
    k->registers = registers_of(k, ir, fn);
    for (int i = 0; i < 3; i++)
        k->reqntid[i] = fn->reqntid[0] ? GM_MAX(fn->reqntid[i], 1u) : 0;

    uint32_t count = GM_MIN(fn->param_count, (uint32_t)IR_MAX_PARAMS);
    for (uint32_t i = 0; i < count; i++) {
        const struct ir_symbol *s = &ir->symbols[ir->params[fn->param_first + i].symbol];
        params[i] = (struct dev_param) { .offset = (uint32_t)s->offset, .size = (uint32_t)s->size };
    }
    const struct wire_function_info f = {
        .name = k->name,
        .param_bytes = k->param_bytes,
        .max_threads = k->max_threads,
        .registers = k->registers,
        .shared_bytes = fn->shared_static,
        .const_bytes = (uint32_t)GM_MIN(const_bytes(ir), (uint64_t)UINT32_MAX),
        .local_bytes = fn->local_bytes,
        .ptx_version = fn->target,
        .binary_version = DEV_CAPABILITY,
        .required_x = k->reqntid[0],
        .required_y = k->reqntid[1],
        .required_z = k->reqntid[2],
        .lacks = k->lacks ? k->lacks : "",
    };
    dev_modinfo_function(info, &f, params, count);
}

/* Makes the interpreter's code, or notes why there is none. GM_CUDA_SUCCESS in both cases. */
static int kernel_interpret(struct soft_kernel *k, const struct ir_module *ir, uint32_t fn)
{
    char why[LACKS_MAX];
    k->interpreter = k->module->client->check ? interp_code_create_checked(ir, fn, why, sizeof(why))
                                              : interp_code_create(ir, fn, why, sizeof(why));
    if (k->interpreter)
        return GM_CUDA_SUCCESS;
    k->lacks = strdup(why);
    gm_info(&topic, "kernel %s cannot be launched: %s", k->name, why);
    return k->lacks ? GM_CUDA_SUCCESS : GM_CUDA_OUT_OF_MEMORY;
}

static int too_much(char *why, size_t why_size)
{
    snprintf(why, why_size, "the client's modules take more memory than one client's may");
    return GM_CUDA_OUT_OF_MEMORY;
}

/* One kernel for each entry. */
static int kernels_make(struct dev_module *m, struct dev_modinfo *info, char *why, size_t why_size)
{
    const struct ir_module *ir = m->ir;
    uint32_t n = 0;
    for (uint32_t i = 0; i < ir->fn_count; i++) {
        if (!ir->fns[i].is_entry)
            continue;
        struct soft_kernel *k = &m->kernels[n++];
        k->name = m->names + ir->fns[i].name;
        int r = kernel_interpret(k, ir, i);
        if (r != GM_CUDA_SUCCESS)
            return r;
        if (k->interpreter && !soft_charge(m, k->interpreter->bytes))
            return too_much(why, why_size);
        kernel_describe(k, ir, &ir->fns[i], info);
    }
    return GM_CUDA_SUCCESS;
}

/* Lays out the module's variables one after the other. m->globals holds their offsets until the
 * module is placed. */
static int globals_lay_out(struct dev_module *m, struct dev_modinfo *info)
{
    const struct ir_module *ir = m->ir;
    m->globals = calloc(GM_MAX(ir->symbol_count, 1u), sizeof(*m->globals));
    if (!m->globals)
        return GM_CUDA_OUT_OF_MEMORY;
    m->globals_align = GLOBALS_ALIGN;
    for (uint32_t i = 0; i < ir->symbol_count; i++) {
        const struct ir_symbol *s = &ir->symbols[i];
        if (!ir_symbol_is_placed(ir, i))
            continue;
        uint64_t end;
        if (!gm_align_up(m->globals_size, GM_MAX(s->align, 1u), &m->globals[i]) ||
            __builtin_add_overflow(m->globals[i], s->size, &end))
            return GM_CUDA_OUT_OF_MEMORY;
        m->globals_size = m->client->check ? end + CHECK_GAP : end;
        m->globals_align = GM_MAX(m->globals_align, s->align);
        if (s->fn != IR_NONE)
            continue;
        const struct wire_global_info g = {
            .name = m->names + s->name,
            .offset = m->globals[i],
            .size = s->size,
            .is_const = s->space == IR_SPACE_CONST,
            .is_managed = (s->flags & IR_SYM_MANAGED) != 0,
            .reference = s->reference,
        };
        dev_modinfo_global(info, &g);
    }
    for (uint32_t i = 0; i < m->kernel_count; i++)
        m->has_workspaces |= m->kernels[i].uses_workspace;
    if (!m->has_workspaces)
        return GM_CUDA_SUCCESS;
    if (!gm_align_up(m->globals_size, SOFT_WORKSPACE_BYTES, &m->workspaces) ||
        __builtin_add_overflow(m->workspaces, (uint64_t)SOFT_WORKSPACES * SOFT_WORKSPACE_BYTES,
                               &m->globals_size))
        return GM_CUDA_OUT_OF_MEMORY;
    return GM_CUDA_SUCCESS;
}

/* Reports what is wrong with a text. Errors of linking are told in the words of NVIDIA's driver,
 * and with its error code. */
static int refused(const struct ptx_error *e, int error, char *why, size_t why_size)
{
    if (error == -EEXIST || error == -ENOENT) {
        snprintf(why, why_size, "error   : %s", e->text);
        return GM_CUDA_UNKNOWN;
    }
    snprintf(why, why_size, "%s%s%u:%u: %s", e->unit, e->unit[0] ? ":" : "", e->line, e->column,
             e->text);
    if (error == -EPROTONOSUPPORT)
        return GM_CUDA_UNSUPPORTED_PTX_VERSION;
    return error == -ENOMEM || error == -E2BIG ? GM_CUDA_OUT_OF_MEMORY : GM_CUDA_INVALID_PTX;
}

static int text_parse(struct dev_client *c, const char *text, size_t size, struct dev_module **out,
                      char *why, size_t why_size)
{
    struct ir_module *ir = NULL;
    struct ptx_error error = { 0 };
    uint32_t kernels = 0;
    size = strnlen(text, size);
    /* The most instructions whose memory could be charged. While a text is parsed it takes twice as
     * much. */
    const uint64_t most = c->dev->code_max / 2 / LEAST_INSTR_BYTES;
    int r = ptx_parse_within(text, size, most, &ir, &error);
    if (r < 0)
        return refused(&error, r, why, why_size);
    for (uint32_t i = 0; i < ir->fn_count; i++)
        kernels += ir->fns[i].is_entry;
    struct dev_module *m = soft_module_create(c, kernels);
    if (!m) {
        ir_module_destroy(ir);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    *out = m;
    m->ir = ir;
    m->text_size = size;
    if (!soft_charge(m,
                     ir_module_bytes(ir) + size + ir->strings_size + kernels * sizeof(*m->kernels)))
        return too_much(why, why_size);
    m->text = malloc(GM_MAX(size, (size_t)1));
    m->names = malloc(GM_MAX(ir->strings_size, (uint64_t)1));
    if (!m->text || !m->names)
        return GM_CUDA_OUT_OF_MEMORY;
    memcpy(m->text, text, size);
    memcpy(m->names, ir->strings, ir->strings_size);
    return GM_CUDA_SUCCESS;
}

int soft_module_load(struct dev_client *c, uint32_t device, const void *image, size_t size,
                     uint32_t kind, struct dev_module **out, struct dev_module_info *info)
{
    struct dev_modinfo collected;
    struct dev_module *m = NULL;
    char why[300] = "out of memory";

    *out = NULL;
    memset(info, 0, sizeof(*info));
    dev_modinfo_init(&collected);
    /* A client sends the PTX of a fat binary or nothing. */
    int r = GM_CUDA_NO_BINARY_FOR_GPU;
    if (kind == WIRE_IMAGE_KIND_PTX) {
        uint64_t bytes;
        struct soft_gate *gate = soft_parse_begin(c->dev, image, size, &bytes);
        r = text_parse(c, image, size, &m, why, sizeof(why));
        soft_parse_end(gate, bytes);
    } else
        snprintf(why, sizeof(why),
                 "machine code for a GPU; the software device needs PTX "
                 "(nvcc -ptx, or -gencode arch=compute_75,code=compute_75)");
    if (r == GM_CUDA_SUCCESS)
        r = kernels_make(m, &collected, why, sizeof(why));
    if (r == GM_CUDA_SUCCESS)
        r = globals_lay_out(m, &collected);
    if (r == GM_CUDA_SUCCESS)
        r = dev_modinfo_finish(&collected, m->ir->version, m->ir->target, m->globals_size,
                               m->globals_align, info);
    else
        dev_modinfo_drop(&collected);
    if (r != GM_CUDA_SUCCESS) {
        info->log = strdup(why);
        soft_module_unload(m);
        return r;
    }
    m->info = (void *)(uintptr_t)info->info.data;
    *out = m;
    return GM_CUDA_SUCCESS;
}

/* --- placing ---------------------------------------------------------------------------------- */

static void globals_write(void *arg)
{
    const struct dev_module *m = arg;
    const struct ir_module *ir = m->ir;
    if (m->globals_size <= DEV_GLOBALS_USED)
        memset((void *)(uintptr_t)m->globals_address, 0, m->globals_size);
    for (uint32_t i = 0; i < ir->symbol_count; i++) {
        const struct ir_symbol *s = &ir->symbols[i];
        if (ir_symbol_is_placed(ir, i) && s->init_size)
            memcpy((void *)(uintptr_t)m->globals[i], ir->init_bytes + s->init, s->init_size);
    }
    for (uint32_t i = 0; i < ir->reloc_count; i++) {
        const struct ir_reloc *r = &ir->relocs[i];
        uint64_t value = (m->globals[r->target] + (uint64_t)r->addend) >> r->shift;
        memcpy((void *)(uintptr_t)(m->globals[r->symbol] + r->offset), &value, r->size);
    }
}

/* Tells the checker where each variable lies, and the workspaces that the device keeps behind
 * them. */
static bool globals_note(const struct dev_module *m)
{
    const struct ir_module *ir = m->ir;
    struct soft_check *c = m->client->check;
    bool good = true;
    for (uint32_t i = 0; i < ir->symbol_count; i++)
        if (ir_symbol_is_placed(ir, i) && ir->symbols[i].size)
            good &= soft_check_note(c, WIRE_CHECK_NOTE_LENT, m->globals[i], ir->symbols[i].size);
    if (m->has_workspaces)
        good &= soft_check_note(c, WIRE_CHECK_NOTE_LENT, m->workspaces,
                                (uint64_t)SOFT_WORKSPACES * SOFT_WORKSPACE_BYTES);
    return good;
}

int soft_module_place(struct dev_module *m, uint64_t globals_address, bool initialise)
{
    struct dev_guard g = { 0 };
    if (!m->ir)
        return GM_CUDA_INVALID_VALUE; /* placed already */
    if (m->globals_size && !dev_window_holds(&m->client->window, globals_address, m->globals_size))
        return GM_CUDA_INVALID_VALUE;
    for (uint32_t i = 0; i < m->ir->symbol_count; i++)
        if (ir_symbol_is_placed(m->ir, i))
            m->globals[i] += globals_address;
    m->workspaces += globals_address;
    m->globals_address = globals_address;
    if (m->client->check && !globals_note(m))
        return GM_CUDA_INVALID_VALUE;
    if (initialise && m->globals_size && dev_guard_call(&g, globals_write, m) != 0)
        return GM_CUDA_INVALID_VALUE;
    soft_give_back(m, ir_module_bytes(m->ir));
    ir_module_destroy(m->ir);
    m->ir = NULL;
    return GM_CUDA_SUCCESS;
}

/*
 * The last step of gmux-cc: a program of objects, archives and libraries, with the runtime library
 * and an object that registers the relocatable device code in them.
 */
#include <string.h>

#include "cudart/cc/cc.h"

static void compile_c(const struct cc_options *o, const char *source, const char *object)
{
    static struct cc_list l;
    l.count = 0;
    cc_add(&l, cc_place.clang);
    cc_add(&l, "-x");
    cc_add(&l, "c");
    cc_add(&l, "-O2");
    cc_add(&l, "-fPIC");
    cc_add(&l, "-c");
    cc_add(&l, source);
    cc_add(&l, "-o");
    cc_add(&l, object);
    cc_run(o, &l);
}

/* Makes an object that registers relocatable device code of the inputs. False: there is none. */
static bool register_relocatable(const struct cc_options *o, const struct cc_list *objects,
                                 const char *object)
{
    const char *source = cc_scratch("registrations.c");
    if (!cc_write_registrations(objects, source))
        return false;
    compile_c(o, source, object);
    return true;
}

void cc_link_device_code(const struct cc_options *o, const struct cc_list *objects)
{
    const char *output = o->output ? o->output : "a_dlink.o";
    if (!register_relocatable(o, objects, output))
        compile_c(o, "/dev/null", output);
}

void cc_link_program(struct cc_options *o, struct cc_list *objects)
{
    static struct cc_list l;
    const char *registrations = cc_scratch("registrations.o");
    if (register_relocatable(o, objects, registrations))
        cc_add(objects, registrations);
    cc_add(&l, cc_place.clang);
    cc_add_all(&l, &o->link);
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, "-o");
    cc_add(&l, o->output ? o->output : "a.out");
    /* As nvcc's linker, for which a library may stand before the source that needs it. */
    cc_add(&l, "-Wl,--start-group");
    for (size_t i = 0; i < objects->count; i++) {
        const char *name = objects->at[i];
        bool ours = strcmp(name, "-lnvrtc") == 0 || strcmp(name, "-lnvJitLink") == 0;
        cc_add(&l,
               ours ? cc_format("%s/lib%s.so.%u", cc_place.libraries, name + 2, o->cudart) : name);
    }
    cc_add(&l, "-Wl,--end-group");
    cc_add(&l, cc_format("%s/libcudart.so.%u", cc_place.libraries, o->cudart));
    cc_add(&l, cc_format("-Wl,-rpath,%s", cc_place.libraries));
    cc_add(&l, cc_format("-L%s", cc_place.driver));
    cc_add(&l, cc_format("-Wl,-rpath,%s", cc_place.driver));
    cc_add(&l, "-lm");
    cc_add(&l, "-ldl");
    cc_add(&l, "-lpthread");
    cc_run(o, &l);
}

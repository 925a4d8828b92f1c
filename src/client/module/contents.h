/*
 * The functions and variables of a module, whether the executor describes all of them at the load
 * (contents.c) or each when it is asked for (lookup.c).
 */
#ifndef GMUX_CLIENT_MODULE_CONTENTS_H
#define GMUX_CLIENT_MODULE_CONTENTS_H

#include "client/module/module.h"

/* Reads a module_info; offsets of variables count from `globals`. CUresult; in either case the
 * caller frees what was read so far. */
int rt_contents_read(struct rt_module *m, int fd, uint64_t globals);
void rt_contents_free(struct rt_module *m);
/* Finds a function of a module that is not by_name; NULL: there is none. */
struct rt_entry *rt_contents_entry(const struct rt_module *m, const char *name);
const struct rt_variable *rt_contents_variable(const struct rt_module *m, const char *name);

/* Fills in an entry, except its index, from the device's description. `params` has room for all its
 * parameters, and lives as long as the entry, as does f->name. False: the description contradicts
 * itself. */
bool rt_entry_read(struct rt_entry *e, const struct wire_function_info *f, struct rt_param *params);
/* Ends a function's handle. NULL is accepted. */
void rt_function_end(struct rt_function *f);

/* Enters a variable into the map of memory; and removes it. */
int rt_variable_enter(const struct rt_module *m, const struct rt_variable *v);
void rt_variable_leave(const struct rt_variable *v);

#endif

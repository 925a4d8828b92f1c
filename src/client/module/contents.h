/*
 * What is in a module: functions and variables, whether all are told at the load (contents.c) or
 * each when it is asked for (lookup.c).
 */
#ifndef GMUX_CLIENT_MODULE_CONTENTS_H
#define GMUX_CLIENT_MODULE_CONTENTS_H

#include "client/module/module.h"

/* Reads a module_info; variables' offsets count from `globals`. CUresult; what was read so far is
 * freed by the caller either way. */
int rt_contents_read(struct rt_module *m, int fd, uint64_t globals);
void rt_contents_free(struct rt_module *m);
/* Of a module that is not by_name; NULL: there is none of that name. */
struct rt_entry *rt_contents_entry(const struct rt_module *m, const char *name);
const struct rt_variable *rt_contents_variable(const struct rt_module *m, const char *name);

/* Fills in all but the index from what the device said; `params` has room for all its parameters
 * and lives as long as the entry, as does f->name. False if it contradicts itself. */
bool rt_entry_read(struct rt_entry *e, const struct wire_function_info *f, struct rt_param *params);
/* A function's handle ends; NULL is fine. */
void rt_function_end(struct rt_function *f);

/* The program's memory knows a variable from now on, and no longer. */
int rt_variable_enter(const struct rt_module *m, const struct rt_variable *v);
void rt_variable_leave(const struct rt_variable *v);

#endif

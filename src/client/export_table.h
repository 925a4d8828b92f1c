/*
 * cuGetExportTable: private tables of functions that NVIDIA's libraries ask the driver for. Two of them are only ever the
 * genuine library's own; the others, as far as the libraries need them, are here. What is known of them is public
 * knowledge and what was seen at the interface; docs/adr/0008 says which and why.
 */
#ifndef GMUX_CLIENT_EXPORT_TABLE_H
#define GMUX_CLIENT_EXPORT_TABLE_H

#include "client/stream/context.h"

/* The interface to the runtime library: the genuine one's, handed on. */
#define RT_TABLE_RUNTIME "6bd5fb6c-5bf4-e74a-8987-d93912fd9df9"

/* The context is destroyed or reset: values that libraries keep with it are given to their destructors. */
void rt_local_destroy_all(struct rt_context *c);

#endif

/*
 * Launches, in two steps: a record is prepared from what the program says; then it goes into the
 * ring, or into a graph, which keeps it.
 */
#ifndef GMUX_CLIENT_MODULE_LAUNCH_H
#define GMUX_CLIENT_MODULE_LAUNCH_H

#include "client/module/module.h"

/* A launch record with room for the largest launch: attributes, if any, and then parameters. */
struct rt_launch {
    uint32_t multiprocessors; /* of the context that it is for, as in struct rt_context */
    struct wire_rec_launch record;
    uint8_t params[WIRE_REC_LAUNCH_PARAMS_MAX];
};
_Static_assert(offsetof(struct rt_launch, params) ==
                   offsetof(struct rt_launch, record) + sizeof(struct wire_rec_launch),
               "parameters follow the record");
_Static_assert(sizeof(CUlaunchAttribute) * RT_LAUNCH_ATTRIBUTES + RT_PARAMS_MAX <=
                   WIRE_REC_LAUNCH_PARAMS_MAX,
               "both fit");

enum rt_attribute_use {
    RT_ATTRIBUTE_HINT,    /* about speed: may be ignored */
    RT_ATTRIBUTE_MATTERS, /* goes to the device */
    RT_ATTRIBUTE_EVENT,   /* recorded behind the kernel */
    RT_ATTRIBUTE_REFUSED, /* this library cannot honour it */
    RT_ATTRIBUTE_UNKNOWN,
};

enum rt_attribute_use rt_attribute_use(const CUlaunchAttribute *a);

/* The beginning of the first step: puts the attributes that matter into the record.
 * CUDA_ERROR_NOT_SUPPORTED: an attribute that changes what a kernel computes cannot be honoured.
 * CUresult. */
int rt_launch_take_attributes(struct rt_launch *l, const CUlaunchAttribute *attributes,
                              unsigned count);

/* For a launch in clusters, by its attributes or because the kernel was compiled so: checks whether
 * the device takes that shape. CUresult. */
int rt_launch_check_clusters(const struct rt_launch *l, struct rt_function *f);

/* Completes a record that has dimensions, attributes (record.attributes may be 0) and
 * multiprocessors already: checks them, packs the parameters (`params` or `extra`, as in
 * cuLaunchKernel), fills in head.op and head.size. Needs no lock and keeps nothing. CUresult. */
int rt_launch_prepare(struct rt_launch *l, struct rt_function *f, void **params, void **extra);

#endif

/*
 * Lists as answers to commands of protocol 3.
 */
#ifndef GMUX_CONTROL_LISTING_H
#define GMUX_CONTROL_LISTING_H

#include "control/request.h"

#define CTL_COLUMNS_MAX 8

struct ctl_listing {
    struct ctl_request *request;
    unsigned columns;
    bool csv;
    bool measures; /* rows only measure the columns now; they are printed later */
    size_t width[CTL_COLUMNS_MAX];
};

/* Replies with a list in the format that --format asks for: `rows` calls ctl_listing_row() for each
 * row, and may be called twice. */
void ctl_listing(struct ctl_request *r, const char *const names[], unsigned columns,
                 void (*rows)(struct ctl_listing *l));
void ctl_listing_row(struct ctl_listing *l, const char *const cells[]);

#endif

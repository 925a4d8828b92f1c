/*
 * Prints the lists of protocol 3, as a table with columns as wide as their contents, or as CSV.
 */
#include "control/listing.h"

#include <string.h>

/* Writes a cell. A program's command line may contain any character. */
static void reply_csv(struct ctl_request *r, const char *cell)
{
    if (!strpbrk(cell, ",\"")) {
        ctl_reply(r, "%s", cell);
        return;
    }
    ctl_reply(r, "\"");
    for (const char *rest = cell; *rest;) {
        size_t n = strcspn(rest, "\"");
        ctl_reply(r, "%.*s%s", (int)n, rest, rest[n] ? "\"\"" : "");
        rest += n + (rest[n] != '\0');
    }
    ctl_reply(r, "\"");
}

void ctl_listing_row(struct ctl_listing *l, const char *const cells[])
{
    for (unsigned i = 0; i < l->columns; i++) {
        bool last = i + 1 == l->columns;
        if (l->measures) {
            l->width[i] = GM_MAX(l->width[i], strlen(cells[i]));
        } else if (l->csv) {
            reply_csv(l->request, cells[i]);
            ctl_reply(l->request, "%s", last ? "\n" : ",");
        } else {
            ctl_reply(l->request, "%-*s%s", last ? 0 : (int)l->width[i], cells[i],
                      last ? "\n" : "  ");
        }
    }
}

void ctl_listing(struct ctl_request *r, const char *const names[], unsigned columns,
                 void (*rows)(struct ctl_listing *l))
{
    struct ctl_listing l = { .request = r, .columns = columns };
    const char *format = ctl_words_option(&r->words, "format");
    format = format ? format : "table";
    size_t n = strcspn(format, ",");
    l.csv = n == 3 && strncmp(format, "csv", 3) == 0;
    if ((!l.csv && !(n == 5 && strncmp(format, "table", 5) == 0)) ||
        (format[n] && strcmp(format + n, ",noheader") != 0)) {
        ctl_reply(r, "--format is table or csv, with ,noheader for no header\n");
        return;
    }
    bool header = !format[n];
    for (int pass = l.csv ? 1 : 0; pass < 2; pass++) {
        l.measures = pass == 0;
        if (header)
            ctl_listing_row(&l, names);
        rows(&l);
    }
}

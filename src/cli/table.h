/*
 * Tables on standard output: columns as wide as their contents, or CSV.
 */
#ifndef GMUX_CLI_TABLE_H
#define GMUX_CLI_TABLE_H

#include "base/attr.h"

#define CLI_COLUMNS_MAX 16

struct cli_table {
    const char *const *headings; /* one for each column */
    unsigned columns;
    char **cells; /* row by row, owned */
    unsigned cells_count, cells_room;
};

/* Adds a cell, row by row from the left. Without memory the process ends. */
void cli_table_add(struct cli_table *t, const char *text);
/* Adds a cell of formatted text. */
void cli_table_addf(struct cli_table *t, const char *fmt, ...) GM_PRINTF(2, 3);

enum cli_format { CLI_TABLE, CLI_CSV };
/* Prints and frees. */
void cli_table_print(struct cli_table *t, enum cli_format format, bool headings);

/* Cuts a line at tabs, in place: the number of fields, at most `max`. */
unsigned cli_fields(char *line, char *fields[], unsigned max);

#endif

/*
 * Whom the kernel kills when memory is short (oom_score_adj, see proc(5)). What can be started anew
 * without a loss offers itself before what others depend on.
 */
#ifndef GMUX_BASE_OOM_H
#define GMUX_BASE_OOM_H

#define GM_OOM_FIRST 1000

/* The calling process, and those that it starts later, are killed before others: `by` thousandths
 * of the memory there is count as if the process used them. A protection that it has inherited
 * ends. If /proc does not let it, nothing changes. */
void gm_oom_offer(int by);

#endif

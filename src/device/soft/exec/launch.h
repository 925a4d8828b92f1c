/*
 * What the software device starts when it comes to the head of a queue: launches, and copies and
 * fills that are too large to be done at once. Both become tasks of the block scheduler, so that a
 * client's share holds for copies, too.
 */
#ifndef GMUX_SOFT_EXEC_LAUNCH_H
#define GMUX_SOFT_EXEC_LAUNCH_H

#include "device/soft/soft.h"

extern const struct dev_work_ops soft_work_ops;

/* Hands a launch to the scheduler. False: its client is being stopped. Called with the client's
 * lock held. */
GM_MUST_CHECK bool soft_launch_start(struct dev_op *op);
/* The launch that a task belongs to; NULL: the task is not a launch. */
struct dev_op *soft_launch_op(struct soft_task *t);
/* Frees a launch. */
void soft_launch_release(struct dev_op *op);

/* dev_ops.launch, dev_ops.flush */
int soft_launch(struct dev_queue *q, uint64_t seq, const struct dev_launch *l);
void soft_flush(struct dev_client *c);

#endif

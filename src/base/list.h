/*
 * Doubly linked list, the link embedded in the element. A list head is a link that points to itself
 * when empty.
 */
#ifndef GMUX_BASE_LIST_H
#define GMUX_BASE_LIST_H

#include "base/attr.h"

struct gm_list {
    struct gm_list *prev;
    struct gm_list *next;
};

static inline void gm_list_init(struct gm_list *l)
{
    l->prev = l;
    l->next = l;
}

static inline bool gm_list_empty(const struct gm_list *l)
{
    return l->next == l;
}

/* Inserts `e` after `pos`; with the head as `pos`: at the front. */
static inline void gm_list_insert(struct gm_list *pos, struct gm_list *e)
{
    e->prev = pos;
    e->next = pos->next;
    pos->next->prev = e;
    pos->next = e;
}

static inline void gm_list_append(struct gm_list *head, struct gm_list *e)
{
    gm_list_insert(head->prev, e);
}

static inline void gm_list_prepend(struct gm_list *head, struct gm_list *e)
{
    gm_list_insert(head, e);
}

/* Takes `e` out and leaves it linked to itself, so that removing twice is harmless. */
static inline void gm_list_remove(struct gm_list *e)
{
    e->prev->next = e->next;
    e->next->prev = e->prev;
    gm_list_init(e);
}

#define gm_list_entry(link, type, member) GM_CONTAINER_OF(link, type, member)

/* `pos` is a `type *` declared by the macro. The list must not change while it is walked. */
#define gm_list_for_each(pos, head, type, member)                                                  \
    for (type *pos = gm_list_entry((head)->next, type, member); &pos->member != (head);            \
         pos = gm_list_entry(pos->member.next, type, member))

/* Like gm_list_for_each(); `pos` itself may be removed or freed inside. */
#define gm_list_for_each_safe(pos, head, type, member)                                             \
    for (type *pos = gm_list_entry((head)->next, type, member),                                    \
              *pos##_next_ = gm_list_entry(pos->member.next, type, member);                        \
         &pos->member != (head);                                                                   \
         pos = pos##_next_, pos##_next_ = gm_list_entry(pos->member.next, type, member))

#endif
